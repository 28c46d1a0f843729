"""Processes that serve the listeners of one broker, and the one that owns what they share."""
