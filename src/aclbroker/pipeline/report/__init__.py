"""Shows to a person what the jobs found: on the terminal, and as one HTML file."""
