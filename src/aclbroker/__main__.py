"""`python -m aclbroker` is the command `aclbroker`."""

from aclbroker.cli import main

main()
