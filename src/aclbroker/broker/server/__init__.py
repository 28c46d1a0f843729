"""Sockets, connections and requests: from a configuration to a running broker, and back."""
