"""Tests of the broker for tests: the class, the pytest plugin and `aclbroker run`."""
