"""Exact answers about all requests, from a set of ACLs: who can, what can, why, and what differs.

Names, hosts and principals are cut into regions in which the decision is constant, so that no
question needs samples. Pure: it imports `acl` and the standard library.
"""
