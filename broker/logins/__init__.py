"""Each listener's way in, made from its settings."""
