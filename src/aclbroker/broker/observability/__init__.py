"""What the broker tells of its work: audit records, its own log, figures for Prometheus."""
