"""The commands `aclbroker store check|backup|restore`, of stores that brokers share."""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore, open_store
from aclbroker.broker.stores.archive import read_archive
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.store import StoreCommand
from tests.acl.examples import READ, WRITE, allow, deny
from tests.stores.following import loaded
from tests.stores.origins import ORIGIN

ACLS = [allow(f"User:{n}", name=f"topic-{n}") for n in range(300)] + [deny("User:mallory")]
RECORDS = {"alice": "1", "bob": "sesame"}
KIND = "drill"


class Content(NamedTuple):
    """The ACLs of a store, and its records of the kind drill."""

    acls: set[AclBinding]
    records: Mapping[str, str]


def store(*words: str) -> int:
    """Run `aclbroker store` and return its exit status."""
    command = parse_arguments(["store", *words])
    assert isinstance(command, StoreCommand)
    return command.run()


def with_store(url: str, do: Callable[[AclStore], object]) -> None:
    """Do something with a store, as a broker that is started for it alone."""

    async def done() -> None:
        opened = open_store(url, {"node.id": "77"})
        await opened.open()
        try:
            await do(opened)  # type: ignore[misc]
        finally:
            await opened.close()

    asyncio.run(done())


def fill(
    url: str,
    added: Collection[AclBinding] = (),
    removed: Collection[AclBinding] = (),
    put: Mapping[str, str] | None = None,
    gone: Collection[str] = (),
    kind: str = KIND,
) -> None:
    """Change a store."""

    async def change(opened: AclStore) -> None:
        await opened.apply(added, removed, ORIGIN)
        await opened.apply_records(kind, put or {}, gone, ORIGIN)

    with_store(url, change)


def content(url: str) -> Content:
    """What a store has."""
    found: list[Content] = []

    async def look(opened: AclStore) -> None:
        found.append(Content(set(await loaded(opened)), await opened.load_records(KIND)))

    with_store(url, look)
    return found[0]


def check_there_and_back(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Back a store up, change it, and restore it; return the backup."""
    copy = tmp_path / "copy.db"
    fill(url, ACLS, put=RECORDS)
    assert store("check", "--store", url) == 0
    assert f"{len(ACLS)} ACLs, 2 records\nIt is whole." in capsys.readouterr().out
    assert store("backup", str(copy), "--store", url) == 0
    assert copy.stat().st_mode & 0o077 == 0
    assert store("backup", str(copy), "--store", url) == 1
    assert f"{copy} exists" in capsys.readouterr().err
    # Any other command reads it as the file of a store.
    assert store("check", "--store", str(copy)) == 0
    assert content(f"sqlite:///{copy}") == Content(set(ACLS), RECORDS)

    changed = Content({*ACLS[100:], allow("User:new", WRITE)}, {"alice": "2", "zoe": "1"})
    fill(url, [allow("User:new", WRITE)], ACLS[:100], {"alice": "2", "zoe": "1"}, ["bob"])
    capsys.readouterr()
    assert store("restore", str(copy), "--store", url) == 1
    told = capsys.readouterr()
    assert "to add: 100 ACLs" in told.out
    assert "only in the target, to remove: 1 ACL" in told.out
    assert "records to put: 2\n+ drill alice\n+ drill bob\n" in told.out
    assert "records to remove: 1\n- drill zoe\n" in told.out
    assert "sesame" not in told.out
    assert "nothing was changed; with --yes" in told.err
    assert content(url) == changed
    assert store("restore", str(copy), "--store", url, "--yes") == 0
    assert content(url) == Content(set(ACLS), RECORDS)
    capsys.readouterr()
    assert store("restore", str(copy), "--store", url) == 0
    assert "nothing to change" in capsys.readouterr().out
    return copy


def check_one_position(url: str, tmp_path: Path) -> None:
    """Back a store up again and again while it is changed: each copy is of one moment."""
    stop = threading.Event()
    written: list[int] = []

    async def write(opened: AclStore) -> None:
        number = 0
        while not stop.is_set():
            pair = [allow(f"User:{number}", READ, "a"), deny(f"User:{number}", READ, "b")]
            await opened.apply(pair, [], ORIGIN)
            written.append(number)
            number += 1

    writer = threading.Thread(target=with_store, args=(url, write))
    writer.start()
    try:
        while not written:
            assert writer.is_alive()
        for copy in (tmp_path / f"copy-{number}.db" for number in range(5)):
            before = len(written)
            assert store("backup", str(copy), "--store", url) == 0
            found = read_archive(copy).acls
            users = {int(acl.principal.removeprefix("User:")) for acl in found}
            assert users == set(range(len(users))), sorted(set(range(max(users))) - users)
            assert len(found) == 2 * len(users), (len(found), len(users), before)
            assert len(users) >= before, (len(users), before)
    finally:
        stop.set()
        writer.join()
