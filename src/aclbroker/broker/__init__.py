"""The broker: authorizer core, stores, handlers, and the server around them."""
