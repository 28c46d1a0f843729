"""The built-in authorizer, running: decisions from memory, changes through a store."""
