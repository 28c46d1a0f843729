"""Makes `python -m aclbroker` the same as the command `aclbroker`."""

from aclbroker.cli import main

main()
