"""Measures the gateway beside a proxy in C, and beside a direct connection to the same Kafka."""
