"""Who makes the changes of tests."""

from aclbroker.broker.stores import Origin

ORIGIN = Origin("User:admin", "192.0.2.1", 1_700_000_000_000)
