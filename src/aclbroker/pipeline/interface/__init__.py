"""What every job has in common: how it is declared, what it is given, and what it returns."""
