"""The command `aclbroker migrate`, run as it is typed, in this process or in one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.acls import describe_acls
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.migrate.command import MigrateCommand
from aclbroker.cli.migrate.places import open_place
from tests.stores.origins import ORIGIN
from tests.support.broker import COMMAND
from tests.support.process import LoggedProcess, wait_for


def migrate(source: str, target: str, *options: str) -> int:
    """Run the command and return its exit status."""
    command = parse_arguments(["migrate", "--from", source, "--to", target, *options])
    assert isinstance(command, MigrateCommand)
    return command.run()


def fill(url: str, acls: Collection[AclBinding]) -> str:
    """Add ACLs to a place, and return its URL."""
    with open_place(url, is_target=True) as place:
        assert place.write(acls, []) == {}
    return url


def contents(url: str) -> set[AclBinding]:
    """The ACLs of a place, of which none may be there twice."""
    with open_place(url) as place:
        acls = place.read().acls
    assert len(acls) == len(set(acls))
    return set(acls)


def session_with(address: str) -> Session:
    """A session with the PLAINTEXT listener of a broker."""
    return open_session(read_addresses(address), read_settings(None))


def described(address: str) -> set[AclBinding]:
    """All ACLs of a cluster."""
    with session_with(address) as session:
        return set(describe_acls(session))


@contextmanager
def migrating(directory: Path, *words: str) -> Iterator[LoggedProcess]:
    """The command in a process of its own, which is killed at the end if it still runs."""
    directory.mkdir(exist_ok=True)
    process = LoggedProcess([str(COMMAND), "migrate", *words], directory, "migrate.log")
    process.spawn()
    try:
        yield process
    finally:
        if process.running.poll() is None:
            process.kill()


@contextmanager
def following(directory: Path, source: str, target: str, *options: str) -> Iterator[LoggedProcess]:
    """The command with --follow, once it has copied all and follows."""
    words = ["--from", source, "--to", target, "--follow", "--interval", "0.05", *options]
    with migrating(directory, *words) as process:
        process.wait_until_ready(
            lambda: "Ctrl-C ends it" in process.new_log_text() or None, seconds=60
        )
        yield process


def wait_until_equal(url: str, acls: Iterable[AclBinding], seconds: float = 120) -> None:
    """Wait until a place has these ACLs and no others."""
    wanted = set(acls)
    wait_for(f"{url} with {len(wanted)} ACLs", lambda: contents(url) == wanted or None, seconds)


async def changed_store(path: Path, added: list[AclBinding], removed: list[AclBinding]) -> None:
    """Change the ACLs of a store as a broker that is its only user."""
    from aclbroker.broker.stores import open_store

    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.apply(added, removed, ORIGIN)
    await store.close()


def change_store(path: Path, added: list[AclBinding], removed: list[AclBinding]) -> None:
    """Change the ACLs of a store that nobody uses now."""
    asyncio.run(changed_store(path, added, removed))
