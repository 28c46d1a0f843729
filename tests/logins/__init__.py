"""Logins that need more than a password: with our broker, and with a real Kafka."""
