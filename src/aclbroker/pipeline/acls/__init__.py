"""Sets of ACLs: read from files, put together with settings, written for people and tools."""
