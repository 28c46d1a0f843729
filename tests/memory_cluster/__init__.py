"""Tests of a broker with a cluster in memory, by real clients."""
