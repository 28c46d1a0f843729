"""How clients log in at each listener, made from its settings."""
