"""The driver of a Python client's attempts; the argument names the library.

tests/clients/authorization/drivers.py describes what it reads and prints. Each library has a
module here whose ATTEMPTS maps a verb to a function of a session and the names of resources, whose
ERRORS are the exceptions that such a function may raise, and whose `name_of` tells their names.
"""

import importlib
import json
import sys
import time
from typing import Any

from tests.clients.python.attempts.session import Session


def main(library: Any) -> None:
    """Answer the lines on standard input."""
    for line in sys.stdin:
        verb, patience, *login_and_resources = line.split()
        session = Session(float(patience), *login_and_resources[:3])
        started = time.monotonic()
        try:
            outcome = library.ATTEMPTS[verb](session, *login_and_resources[3:])
        except library.ERRORS as error:
            outcome = library.name_of(error)
        answer = {"outcome": outcome, "seconds": round(time.monotonic() - started, 3)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(importlib.import_module(f"{__package__}.of_{sys.argv[1].replace('-', '_')}"))
