"""From audit logs to access analysis, on Spark: who used what, and what ACLs are for."""
