"""This product beside its peers, measured in one run: `python -m benchmarks`, or ``make bench``."""
