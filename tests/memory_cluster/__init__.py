"""Tests of a running broker with a cluster in memory, with real clients and beside a real Kafka."""
