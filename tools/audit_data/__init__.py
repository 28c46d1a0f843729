"""Synthetic audit data: a made-up cluster, its traffic as `broker.acl` decides it, and its log."""
