"""SASL: the exchange, and the server's side of each mechanism, without I/O."""
