"""The Kafka wire protocol: turns bytes into typed messages and back, without I/O."""
