"""The authorizer core: ACLs in, decisions out. The standard library only, no I/O and no clock."""
