"""What a listener's way in costs those who do not go it."""

import subprocess
import sys

NOT_WITHOUT_NEED = ("jwt", "cryptography", "aiohttp")


def test_a_broker_loads_the_libraries_of_a_mechanism_only_for_a_listener_that_has_it() -> None:
    program = (
        "import sys, aclbroker.cli, aclbroker.broker.server.run\n"
        "print({name.partition('.')[0] for name in sys.modules} & set(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *NOT_WITHOUT_NEED],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"
