"""Decides anew what a log asked, under any rules, with the broker's own authorizer core."""
