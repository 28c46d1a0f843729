"""From audit logs to access analysis: jobs over what was allowed and denied, and policy files."""
