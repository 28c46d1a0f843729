"""A real cluster behind the gate: requests that the gate allows are forwarded to its brokers.

`cluster` is what the gateway knows of it, `connection` one connection to a broker, `pipeline` the
requests of one client, `forward` the handlers, and `topics` the resolver of topic ids.
"""
