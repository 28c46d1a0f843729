"""Tests of what is in flight in share groups."""
