"""Adds, removes and lists ACLs, and prints what kafka-acls.sh prints.

Errors of the cluster stand on standard output, as there, in one line with the class of Kafka's
client; its stack trace is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from aclbroker.cli.acls.options import OPTIONS, Options, UsageError, parse
from aclbroker.terminal import complain, put, put_text

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.broker.client.session import Session
    from aclbroker.cli.acls.targets import ListTarget, Target
    from aclbroker.cli.acls.wanted import Entry, ResourceFilter

_PURPOSE = "This tool helps to manage acls on kafka."


@dataclass(frozen=True, slots=True)
class AclsCommand:
    """One command line of `aclbroker acls`: the words behind that."""

    words: Sequence[str]

    def run(self) -> int:
        """Run it; return 0, or 1 if the options are wrong, after help, and if it failed."""
        try:
            options = parse(self.words)
            if not self.words or "help" in options:
                raise UsageError(_PURPOSE)
            if "version" in options:
                return _print_version()
            from aclbroker.cli.acls.checks import WARNING, check, is_direct

            if is_direct(options):
                complain(WARNING)
            return _run(check(options), options)
        except UsageError as error:
            complain(str(error), *usage())
            return 1


def _run(action: str, options: Options) -> int:
    from aclbroker.broker.client.errors import ClientConfigError, ClientError
    from aclbroker.cli.acls.checks import is_direct
    from aclbroker.cli.acls.targets import ClusterTarget

    try:
        if "store" in options:
            from aclbroker.cli.acls.past import stored

            _List(options)(stored(options))
            return 0
        if is_direct(options):
            return _run_directly(action, options)
        do = _ACTIONS[action](options)
        with _session(options) as session:
            do(ClusterTarget(session))
    except ClientConfigError as error:
        return _failed("Failed to create new KafkaAdminClient", *error.problems)
    except ClientError as error:
        return _failed(f"{error.java_name}: {error}")
    except _Unreadable as error:
        return _failed(*error.args)
    except ValueError as error:
        return _failed(str(error))
    return 0


def _run_directly(action: str, options: Options) -> int:
    """Run an action on the ACLs in ZooKeeper; return the exit status. Raises ValueError."""
    from aclbroker.cli.acls.zookeeper import ZookeeperTarget

    do = _ACTIONS[action](options)
    with ZookeeperTarget(options) as target:
        do(target)
        return target.status


class _Unreadable(Exception):
    """A file cannot be read; its path and the reason are the arguments."""


def _session(options: Options) -> Session:
    from aclbroker.broker.client.session import open_controller_session, open_session
    from aclbroker.broker.client.settings import read_addresses, read_settings

    file = options.one("command-config")
    if file is not None:
        _check_readable(file)
    elif "command-config" in options:
        put("Did not load any properties since the property file is not specified")
    by_broker = "bootstrap-server" in options
    name = "bootstrap.servers" if by_broker else "bootstrap.controllers"
    addresses = options.one("bootstrap-server" if by_broker else "bootstrap-controller") or ""
    if not addresses.replace(",", " ").strip():
        raise ValueError(f"Configuration '{name}' values must not be empty.")
    settings = read_settings(file)
    for warning in settings.warnings:
        complain(f"aclbroker: {warning}")
    opened = open_session if by_broker else open_controller_session
    return opened(read_addresses(addresses, name), settings)


def _check_readable(file: str) -> None:
    """Raise `_Unreadable` for a file that cannot be read; Kafka's tool prints only its path."""
    try:
        with open(file, "rb"):
            return
    except OSError as error:
        raise _Unreadable(file, str(error.strerror)) from None


class _Add:
    def __init__(self, options: Options) -> None:
        from aclbroker.cli.acls.wanted import to_add

        self._wanted = to_add(options)

    def __call__(self, target: Target) -> None:
        from aclbroker.cli.acls.texts import binding_line, entry_lines, pattern_line

        for resource, entries in self._wanted.items():
            there = target.known(resource.filter())
            acls = [resource.binding(entry) for entry in entries]
            for acl in acls:
                if acl in there:
                    put(binding_line("Acl {} already exists.", acl))
            missing = [acl for acl in acls if acl not in there]
            if missing:
                put(pattern_line("Adding ACLs for resource `{}`: ", *resource))
                _put_entries(" ", entry_lines(acl[3:] for acl in missing), target.behind_entries)
                put("")
                target.add(missing)


class _Remove:
    def __init__(self, options: Options) -> None:
        from aclbroker.cli.acls.wanted import to_remove

        self._wanted = to_remove(options)
        self._asks = "force" not in options

    def __call__(self, target: Target) -> None:
        for resource, entries in self._wanted.items():
            if self._asks and not _confirmed(resource, entries, target.behind_entries):
                continue
            filters = [resource.filter(entry) for entry in entries]
            target.remove(filters or [resource.filter()])


def _confirmed(resource: ResourceFilter, entries: Collection[Entry], behind: str) -> bool:
    from aclbroker.cli.acls.texts import entry_lines, pattern_line

    if entries:
        put("Are you sure you want to remove ACLs: ")
        _put_entries(" ", entry_lines(entries), behind)
    asked = " from" if entries else "Are you sure you want to delete all ACLs for"
    put(pattern_line(f"{asked} resource filter `{{}}`? (y/n)", *resource))
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise ValueError("nobody answers on standard input; --force does not ask")
    return answer.rstrip("\r\n").lower() == "y"


class _List:
    def __init__(self, options: Options) -> None:
        from aclbroker.cli.acls.wanted import to_list

        self._resources, self._principals = to_list(options)

    def __call__(self, target: ListTarget) -> None:
        from aclbroker.acl.bindings import AclFilter
        from aclbroker.cli.acls.texts import line_of

        filters = [each.filter() for each in self._resources] or [AclFilter()]
        found = sorted({acl for each in filters for acl in target.find(each)})
        if not self._principals:
            _print_acls(found, target.behind_entries)
        for principal in self._principals:
            put(line_of("ACLs for principal `{}`", principal))
            of_principal = [acl for acl in found if acl.principal == principal]
            _print_acls(of_principal, target.behind_entries)


_ACTIONS: Final[Mapping[str, Callable[[Options], Callable[[Target], None]]]] = {
    "add": _Add,
    "remove": _Remove,
    "list": _List,
}
"""The classes that read an action from options, and then run it at a target."""


def _print_acls(acls: Iterable[AclBinding], behind: str = "") -> None:
    """Print sorted ACLs, those of one pattern together.

    ``behind`` is printed behind the line of each pattern, and before and behind its ACLs.
    """
    from aclbroker.cli.acls.texts import entry_lines, pattern_line

    for pattern, theirs in groupby(acls, key=lambda acl: acl[:3]):
        put(pattern_line("Current ACLs for resource `{}`:", *pattern) + behind)
        _put_entries(behind, entry_lines(acl[3:] for acl in theirs), behind)
        put("")


def _put_entries(before: str, lines: Iterable[str], behind: str) -> None:
    """Print entries, with the blanks around them that Kafka's tool prints there."""
    text = "\n".join(lines)
    put_text(f"{before}{text}{behind}")


def usage() -> list[str]:
    """Return the lines of --help, which also follow every message about wrong options."""
    lines = ["usage: aclbroker acls --bootstrap-server HOST:PORT (--list | --add | --remove) ..."]
    for each in OPTIONS:
        value = f" {each.value}" if each.value else ""
        if each.value_is_optional:
            value = f" [{each.value}]"
        lines += [f"  --{each.name}{value}", f"        {each.meaning}"]
    return lines


def _print_version() -> int:
    from importlib import metadata

    put(metadata.version("aclbroker"))
    return 0


def _failed(reason: str, *details: str) -> int:
    put(f"Error while executing ACL command: {reason}", *details)
    return 1
