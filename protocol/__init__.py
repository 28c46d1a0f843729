"""The Kafka wire protocol: bytes to typed messages and back; no I/O, no meaning."""
