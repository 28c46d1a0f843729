"""The HTTP API for centralised ACLs."""
