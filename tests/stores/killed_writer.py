"""Run as a program: fills a store, settles it, changes it again in small steps, and is killed."""

import os
import signal
import sys

from aclbroker.broker.stores.database import Database
from tests.acl.examples import allow, deny
from tests.stores.origins import ORIGIN

if __name__ == "__main__":
    database = Database(sys.argv[1])
    database.open()
    database.apply([allow(f"User:{n}", name=f"topic-{n}") for n in range(200)], [], ORIGIN)
    database.apply([allow("User:removed"), allow("User:back")], [], ORIGIN)
    database.apply_records("scram", {"alice": "1" * 300, "bob": "2" * 300}, [], ORIGIN)
    database.apply([], [allow("User:removed"), allow("User:back")], ORIGIN)
    database.settle()
    for number in range(5):
        database.apply([deny(f"User:{number}", name=f"topic-{number}")], [], ORIGIN)
    database.apply_records("scram", {"alice": "3"}, ["bob"], ORIGIN)
    database.apply([allow("User:back")], [allow("User:7", name="topic-7")], ORIGIN)
    database.apply([deny("User:mallory")], [], ORIGIN)
    os.kill(os.getpid(), signal.SIGKILL)
