"""The arguments of `aclbroker store check|repair|backup|restore`, and what these commands print.

Their imports take place only when a command runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclbroker.broker.stores.examination import Examination


@dataclass(frozen=True, slots=True)
class StoreCommand:
    """Look at the file of a store, save what is in it, copy it, or put a copy in its place."""

    action: str
    """One of check, repair, backup and restore."""

    file: str | None = None
    """The store's file; without it the one that ``config`` names."""

    config: str | None = None
    """The broker's server.properties; None for the default settings."""

    copy: str | None = None
    """The file of the backup; of a repair the new file, by default beside the damaged one."""

    accepts_lost_acls: bool = False

    def run(self) -> int:
        """Run the command; return 0, or 1 if the store is damaged or the command failed."""
        from aclbroker.broker.config import ConfigError
        from aclbroker.broker.stores.store import StoreError

        try:
            path = self._path()
        except ConfigError as error:
            return _failed(*error.problems)
        except ValueError as error:
            return _failed(str(error))
        try:
            return _ACTIONS[self.action](self, path)
        except StoreError as error:
            return _failed(str(error))

    def _path(self) -> Path:
        if self.file is not None:
            return Path(os.path.realpath(self.file))
        from aclbroker.broker.config import load
        from aclbroker.broker.stores import path_of

        url = load(self.config).store
        path = path_of(url)
        if path is None:
            raise ValueError(f"aclbroker.store={url} has no file")
        return Path(os.path.realpath(path))


def _check(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.examination import examine

    found = examine(path)
    _print(f"{path}: {_described(found)}", *_running(found))
    if not found.problems:
        _print("It is whole." if found.sealed else "Its pages fit together. It has no checksums.")
        return 0
    _print("It is damaged:", *found.problems)
    if found.may_have_lost_acls:
        _print("Changes of ACLs may be lost. Restore a backup (aclbroker store restore).")
    _print("aclbroker store repair writes what can be kept to a new file.")
    return 1


def _repair(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.repair import LossNotAccepted, repair

    target = Path(os.path.realpath(command.copy or f"{path}.repaired"))
    try:
        found = repair(path, target, accept_loss=command.accepts_lost_acls)
    except LossNotAccepted as error:
        _print(*error.found.problems)
        return _failed(str(error))
    _print(*found.problems, f"{target}: {_described(found)}")
    if found.may_have_lost_acls:
        _print("Compare its ACLs with what they should be before a broker uses it.")
    _print(f"To use it: aclbroker store restore {target} --store {path}")
    return 0


def _backup(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.copies import backup

    target = Path(os.path.realpath(str(command.copy)))
    _print(f"{target}: {_described(backup(path, target))}")
    return 0


def _restore(command: StoreCommand, path: Path) -> int:
    from aclbroker.broker.stores.copies import restore

    found, aside = restore(Path(os.path.realpath(str(command.copy))), path)
    _print(f"{path}: {_described(found)}")
    if aside is not None:
        _print(f"What was there before is {aside}")
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
        help="check, repair, back up or restore the file of ACLs",
        description="Look after the file in which a broker keeps ACLs and records.",
        allow_abbrev=False,
    )
    actions = store.add_subparsers(dest="action", required=True)
    _action(actions, "check", "read all of the file and tell what is damaged; changes nothing")
    repair = _action(actions, "repair", "write what can be kept of a damaged file to a new one")
    repair.add_argument("--output", dest="copy", metavar="FILE", help="default: STORE.repaired")
    repair.add_argument(
        "--accept-lost-acls",
        dest="accepts_lost_acls",
        action="store_true",
        help="write the new file although it may lack DENYs, or removals of ALLOWs",
    )
    backup = _action(actions, "backup", "copy the file, also while a broker uses it")
    backup.add_argument("copy", metavar="FILE", help="the new file")
    restore = _action(actions, "restore", "put a copy in the place of the store; no broker may run")
    restore.add_argument("copy", metavar="FILE", help="what backup or repair has written")


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
        "--store", dest="file", metavar="FILE", help="the store's file, whatever the settings say"
    )
    return action


def store_command(options: argparse.Namespace) -> StoreCommand:
    """Return the command that parsed arguments describe."""
    given = vars(options)
    return StoreCommand(**{name: given[name] for name in given if name != "command"})


def _print(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _failed(*lines: str) -> int:
    for line in lines:
        sys.stderr.write(f"aclbroker: {line}\n")
    return 1
