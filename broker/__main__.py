"""`python -m broker` is the command `aclbroker`."""

from broker.cli import main

main()
