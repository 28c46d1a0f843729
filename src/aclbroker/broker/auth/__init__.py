"""Who is asking: SASL mechanisms and the exchange around them, without I/O."""
