"""What this program costs beside its peers, measured in one run: ratios count."""
