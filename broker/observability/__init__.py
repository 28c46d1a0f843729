"""What the broker leaves behind of what it did: audit records, its own log, figures."""
