"""The arguments of `aclbroker store`, and its actions on files.

The actions on stores that brokers share are in `shared_store`. Imports take place only when a
command runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aclbroker.cli.cluster import failed, told

if TYPE_CHECKING:
    from aclbroker.broker.stores.examination import Examination

_KAFKA = "kafka://"
_SHARED = (_KAFKA, "zookeeper://")


@dataclass(frozen=True, slots=True)
class StoreCommand:
    """Look at a store, save what is in it, copy it, or put a copy in its place."""

    action: str
    """One of check, repair, backup, restore and accept."""

    file: str | None = None
    """The store's file, or its URL; without it the one that ``config`` names."""

    config: str | None = None
    """The broker's server.properties; None for the default settings."""

    command_config: str | None = None
    """Properties to reach the topic or the ZooKeeper with that ``file`` names."""

    copy: str | None = None
    """The file of the backup; of a repair the new file, by default beside the damaged one."""

    accepts_lost_acls: bool = False
    accepts_lost_denies: bool = False
    is_sure: bool = False

    def run(self) -> int:
        """Run the command; return 0, or 1 if the store is damaged or the command failed."""
        from aclbroker.broker.client.errors import ClientConfigError
        from aclbroker.broker.config import ConfigError
        from aclbroker.broker.stores.store import StoreError

        try:
            url, properties = self._named()
            if url.startswith(_SHARED):
                return self._run_shared(url, properties)
            if self.action == "accept":
                return failed(f"{url}: only a topic can be accepted; see aclbroker store check")
            return _ACTIONS[self.action](self, self._path(url))
        except (ClientConfigError, ConfigError) as error:
            return failed(*error.problems)
        except StoreError as error:
            return failed(*str(error).splitlines())

    def _named(self) -> tuple[str, Mapping[str, str]]:
        """Return the file or the URL of the store, and how to reach it."""
        # No broker of the fleet has this id, so that none is fenced off, but the next restore has:
        # it ends at once what one that was killed has left open. Nor are a broker's files touched.
        own = {"node.id": "restore", "aclbroker.store.snapshot.dir": ""}
        if self.file is None:
            from aclbroker.broker.config import load
            from aclbroker.broker.config.store_url import store_url

            properties = load(self.config).properties
            return store_url(properties), {**properties, **own}
        if self.command_config is not None and self.file.startswith(_KAFKA):
            from aclbroker.broker.stores.kafka.connection import SETTING

            own[SETTING] = self.command_config
        elif self.command_config is not None:
            from aclbroker.broker.client.settings import read_given

            given = read_given(self.command_config)[0]
            own = {name: each.value for name, each in given.items()} | own
        return self.file, own

    def _path(self, url: str) -> Path:
        from aclbroker.broker.stores import StoreError, path_of

        path = path_of(url)
        if path is None and self.file is None:
            raise StoreError(f"aclbroker.store={url} has no file")
        if path is None and "://" in url:
            scheme = url.partition("://")[0]
            raise StoreError(
                f"--store {scheme}://... names no store; write a path, sqlite:///PATH, "
                "kafka://HOST:PORT,HOST:PORT/TOPIC or zookeeper://HOST:PORT,HOST:PORT/CHROOT"
            )
        return Path(os.path.realpath(path or url))

    def _run_shared(self, url: str, properties: Mapping[str, str]) -> int:
        from aclbroker.cli import shared_store

        if self.action == "check":
            return shared_store.check(url, properties)
        if self.action == "repair":
            return failed(f"{url}: only a file can be repaired; restore a backup")
        if self.action == "accept":
            return shared_store.accept(url, properties, is_sure=self.is_sure)
        copy = Path(os.path.realpath(str(self.copy)))
        if self.action == "backup":
            return shared_store.backup(url, properties, copy)
        return shared_store.restore(
            url,
            properties,
            copy,
            is_sure=self.is_sure,
            may_lose_denies=self.accepts_lost_denies,
        )


def _check(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.examination import examine

    found = examine(path)
    told(f"{path}: {_described(found)}", *_running(found))
    if not found.problems:
        told("It is whole." if found.sealed else "Its pages fit together. It has no checksums.")
        return 0
    told("It is damaged:", *found.problems)
    if found.may_have_lost_acls:
        told("Changes of ACLs may be lost. Restore a backup (aclbroker store restore).")
    told("aclbroker store repair writes what can be kept to a new file.")
    return 1


def _repair(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.repair import LossNotAccepted, repair

    target = Path(os.path.realpath(command.copy or f"{path}.repaired"))
    try:
        found = repair(path, target, accept_loss=command.accepts_lost_acls)
    except LossNotAccepted as error:
        told(*error.found.problems)
        return failed(str(error))
    told(*found.problems, f"{target}: {_described(found)}")
    if found.may_have_lost_acls:
        told("Compare its ACLs with what they should be before a broker uses it.")
    told(f"To use it: aclbroker store restore {target} --store {path}")
    return 0


def _backup(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.copies import backup

    target = Path(os.path.realpath(str(command.copy)))
    told(f"{target}: {_described(backup(path, target))}")
    return 0


def _restore(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.copies import restore

    found, aside = restore(Path(os.path.realpath(str(command.copy))), path)
    told(f"{path}: {_described(found)}")
    if aside is not None:
        told(f"What was there before is {aside}")
    return 0


_ACTIONS = {"check": _check, "repair": _repair, "backup": _backup, "restore": _restore}


def _described(found: Examination) -> str:
    parts = [f"schema {found.version}"]
    if found.cluster_id is not None:
        parts.append(f"cluster id {found.cluster_id}")
    if found.sealed is not None:
        parts.append(f"{found.sealed.transactions} transactions")
        acls = "" if found.acls is None else f", which make {found.acls} ACLs"
        parts.append(f"{found.changes} changes of ACLs{acls}")
        parts.append(f"{found.records} records")
    return ", ".join(parts)


def _running(found: Examination) -> list[str]:
    return ["A broker uses it; the end of its log was not looked at."] if found.is_running else []


def add_store(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`."""
    store = commands.add_parser(
        "store",
        help="check, repair, back up or restore a store of ACLs",
        description="Look after the store in which brokers keep ACLs and records.",
        allow_abbrev=False,
    )
    actions = store.add_subparsers(dest="action", required=True)
    _action(actions, "check", "read all of a store and tell what is damaged; changes nothing")
    repair = _action(actions, "repair", "write what can be kept of a damaged file to a new one")
    repair.add_argument("--output", dest="copy", metavar="FILE", help="default: STORE.repaired")
    repair.add_argument(
        "--accept-lost-acls",
        dest="accepts_lost_acls",
        action="store_true",
        help="write the new file although it may lack DENYs, or removals of ALLOWs",
    )
    backup = _action(actions, "backup", "copy the store to a file, also while brokers use it")
    backup.add_argument("copy", metavar="FILE", help="the new file")
    restore = _action(
        actions,
        "restore",
        "put a copy in the place of a file that no broker uses, or change a shared store into it",
    )
    restore.add_argument("copy", metavar="FILE", help="what backup or repair has written")
    restore.add_argument(
        "--yes",
        dest="is_sure",
        action="store_true",
        help="change a shared store; without it the changes are shown",
    )
    restore.add_argument(
        "--accept-lost-denies",
        dest="accepts_lost_denies",
        action="store_true",
        help="restore the others even if a shared store cannot hold some DENYs",
    )
    accept = _action(
        actions, "accept", "confirm that a topic is used although its beginning was deleted"
    )
    accept.add_argument(
        "--yes",
        dest="is_sure",
        action="store_true",
        help="confirm it; without it what is missing is shown",
    )


def _action(actions: Any, name: str, does: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=does, description=f"{does[0].upper()}{does[1:]}.", allow_abbrev=False
    )
    store = action.add_mutually_exclusive_group()
    store.add_argument(
        "--config",
        metavar="FILE",
        help="the broker's server.properties; without it the default settings hold",
    )
    store.add_argument(
        "--store",
        dest="file",
        metavar="FILE",
        help="the store's file, or its URL (sqlite:///, kafka://, zookeeper://), whatever the "
        "settings say",
    )
    action.add_argument(
        "--command-config",
        metavar="FILE",
        help="a file of properties to reach the topic or the ZooKeeper of --store with",
    )
    return action


def store_command(options: argparse.Namespace) -> StoreCommand:
    """Return the command that parsed arguments describe."""
    given = vars(options)
    return StoreCommand(**{name: given[name] for name in given if name != "command"})
