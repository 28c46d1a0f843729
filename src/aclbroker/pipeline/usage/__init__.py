"""The events of a log, counted: what every job reads."""
