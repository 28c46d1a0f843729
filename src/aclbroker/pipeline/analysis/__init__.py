"""Reasoning about ACLs and use that needs no Spark."""
