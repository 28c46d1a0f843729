"""A store that another process of this broker owns, reached over a Unix socket between the two."""
