"""The client's side of SASL: the mechanisms that the broker knows, each from Kafka's settings.

A mechanism is imported only when somebody logs in with it.
"""
