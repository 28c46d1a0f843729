"""The command `aclbroker audit`: from its arguments to the answers of jobs, in one report."""
