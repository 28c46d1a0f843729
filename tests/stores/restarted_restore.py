"""A restore of a store that brokers share is killed while it is made, and made again."""

import random
import secrets
import time
from functools import partial
from pathlib import Path

from tests.acl.examples import READ, allow, deny
from tests.stores.shared_copies import Content, content, fill, store
from tests.support.broker import COMMAND
from tests.support.process import LoggedProcess

KILLS = 2
LONGEST_S = 0.6


def check_restore_is_killed(url: str, tmp_path: Path) -> None:
    """Kill a restore at random points; what is there then is what was, or what is to be."""
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    copy = tmp_path / "copy.db"
    before = {deny(f"User:{n}", READ, f"t-{n}") for n in range(400)}
    wanted = {allow(f"User:{n}", READ, f"t-{n}") for n in range(8_000)}
    fill(f"sqlite:///{copy}", wanted, put={"alice": "2"})
    fill(url, before, put={"alice": "1", "bob": "1"})
    words = ["store", "restore", str(copy), "--store", url, "--yes"]
    for kill in range(KILLS):
        directory = tmp_path / str(kill)
        directory.mkdir()
        process = LoggedProcess([str(COMMAND), *words], directory, "restore.log")
        process.spawn()
        try:
            planned = process.wait_until_ready(partial(_has_planned, process), 60)
            if planned == "planned":
                time.sleep(chance.uniform(0, LONGEST_S))
        finally:
            process.kill()
        if planned == "over":
            break
        found = content(url).acls
        assert found <= before | wanted, f"Random({seed})"
        # A denial goes when all is there that is to be allowed.
        assert before <= found or wanted <= found, f"Random({seed})"
    assert store(*words[1:]) == 0
    assert content(url) == Content(wanted, {"alice": "2"})


def _has_planned(process: LoggedProcess) -> str | None:
    text = process.new_log_text()
    if "nothing to change" in text or "It has all of the backup" in text:
        return "over"
    return "planned" if "records to put" in text or "only in the target" in text else None
