"""The same requests as bytes to a real Kafka 4.3.0 and to our broker give the same answers."""
