"""Tests of the cluster in memory: its state, without requests."""
