"""Run as a program: fills a store, settles it, changes it again in small steps, and is killed."""

import os
import signal
import sys

from aclbroker.broker.stores.database import Database
from tests.acl.examples import allow, deny

if __name__ == "__main__":
    database = Database(sys.argv[1])
    database.open()
    database.apply([allow(f"User:{n}", name=f"topic-{n}") for n in range(200)], [])
    database.apply([allow("User:removed"), allow("User:back")], [])
    database.apply_records("scram", {"alice": "1" * 300, "bob": "2" * 300}, [])
    database.apply([], [allow("User:removed"), allow("User:back")])
    database.settle()
    for number in range(5):
        database.apply([deny(f"User:{number}", name=f"topic-{number}")], [])
    database.apply_records("scram", {"alice": "3"}, ["bob"])
    database.apply([allow("User:back")], [allow("User:7", name="topic-7")])
    database.apply([deny("User:mallory")], [])
    os.kill(os.getpid(), signal.SIGKILL)
