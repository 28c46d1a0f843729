"""Logins that need an issuer of tokens or a KDC: with our broker, and with a real Kafka."""
