"""One wrong bit anywhere in a store: it is refused, or has the very same ACLs and records.

Each case is a copy of the files as a broker that was killed left them, with one bit turned.
"""

import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from aclbroker.broker.stores.database import Database
from aclbroker.broker.stores.locks import Mark, StoreLocks
from aclbroker.broker.stores.store import StoreError
from tests.acl.examples import allow, deny
from tests.stores import killed_writer


def content(path):
    """Return the ACLs and the records of a file, or None if it is refused."""
    database = Database(path)
    try:
        database.open()
        acls = sorted({acl for chunk in database.load() for acl in chunk})
        return acls, database.load_records("scram"), database.cluster_id()
    except StoreError:
        return None
    finally:
        database.close()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The files of a writer that was killed when a part of its changes was in the log alone."""
    directory = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", killed_writer.__name__, directory / "acls.db"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    assert (directory / "acls.db").stat().st_size > 20_000
    assert (directory / "acls.db-wal").stat().st_size > 20_000
    return directory


@pytest.mark.parametrize("kept", ["all", "without .lock", "settled"])
def test_a_wrong_bit_is_refused_or_changes_nothing(killed, tmp_path, kept, every_case):
    flips = 500 if every_case else 60
    original = copied(killed, tmp_path / "original", kept)
    expected = content(copied(killed, tmp_path / "good", kept))
    assert expected is not None
    assert deny("User:mallory") in expected[0]
    assert allow("User:removed") not in expected[0]
    files = [file for file in original.parent.iterdir() if not file.name.endswith("-shm")]
    sizes = [file.stat().st_size for file in files]
    chance = random.Random(411)
    outcomes: Counter[str] = Counter()
    for number in range(flips):
        [file] = chance.choices(files, sizes)
        offset, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        path = copied(original.parent, tmp_path / "flipped", "all")
        flip(path.parent / file.name, offset, bit)
        found = content(path)
        assert found in (None, expected), (number, file.name, offset, bit)
        outcomes["refused" if found is None else "the same"] += 1
    print(kept, dict(outcomes))  # shown with pytest -s
    assert outcomes.total() == flips
    assert min(outcomes["refused"], outcomes["the same"]) > flips // 10


def copied(source: Path, target: Path, kept: str) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    path = target / "acls.db"
    if kept == "without .lock":
        Path(f"{path}.lock").unlink()
    if kept == "settled":
        assert content(path) is not None
        Path(f"{path}.lock").unlink()
        assert not Path(f"{path}-wal").exists()
    return path


def flip(file: Path, offset: int, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 1 << bit
    file.write_bytes(data)


@pytest.mark.parametrize("damage", ["removed", "emptied", "cut", "header", "last frame"])
@pytest.mark.parametrize("kept", ["all", "without .lock"])
def test_a_write_ahead_log_that_lost_its_end_is_noticed(killed, tmp_path, damage, kept):
    path = copied(killed, tmp_path / "damaged", kept)
    log = Path(f"{path}-wal")
    data = log.read_bytes()
    frames = (len(data) - 32) // (24 + 4096)
    last = 32 + (frames - 1) * (24 + 4096)
    if damage == "removed":
        log.unlink()
    elif damage == "header":
        flip(log, 17, 3)
    elif damage == "last frame":
        flip(log, last + 100, 3)
    else:
        log.write_bytes(data[: 0 if damage == "emptied" else last + 50])
    with pytest.raises(StoreError, match="-wal"):
        Database(path).open()


@pytest.mark.parametrize(("mark", "is_refused"), [(5, True), (11, False)])
def test_after_a_power_cut_one_transaction_may_be_torn(killed, tmp_path, mark, is_refused):
    """The mark is too small then, because nothing syncs it."""
    path = copied(killed, tmp_path / "cut", "all")
    log = Path(f"{path}-wal")
    frames = range(32, log.stat().st_size, 24 + 4096)
    flip(log, frames[-1 if mark == 11 else 3] + 2_000, 3)
    cluster_id = Path(f"{path}.lock").read_text().split()[0]
    locks = StoreLocks(path)
    locks.take()
    locks.replace_mark(Mark(cluster_id, mark))
    locks.release()
    assert (content(path) is None) == is_refused


def test_every_page_that_is_zeroed_is_refused_or_changes_nothing(killed, tmp_path):
    original = copied(killed, tmp_path / "original", "settled")
    expected = content(copied(original.parent, tmp_path / "good", "all"))
    refused = 0
    pages = range(0, original.stat().st_size, 4096)
    for offset in pages:
        path = copied(original.parent, tmp_path / "zeroed", "all")
        data = path.read_bytes()
        path.write_bytes(data[:offset] + bytes(4096) + data[offset + 4096 :])
        found = content(path)
        assert found in (None, expected), offset
        refused += found is None
    assert refused > len(pages) // 2
