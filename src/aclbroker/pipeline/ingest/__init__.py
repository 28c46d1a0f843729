"""From log files to the tables of events and of lines that are none."""
