"""Where the commands that answer questions get ACLs from, and the settings beside them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.acl.reasoning.rules import Rules

KAFKA: Final = "kafka://"
_OF_FILES: Final = ("kraft:///", "sqlite:///")
_PROPERTIES: Final = ".properties"
_GROUPS_FILE: Final = "aclbroker.groups.file"


class SourceError(Exception):
    """ACLs or settings could not be read; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A set of ACLs, and what decides beside them.

    ``place`` is a file of ACLs, ``kafka://HOST:PORT``, ``sqlite:///FILE``, ``kraft:///DIR``, or a
    broker's server.properties whose store is read; None is the store of the default settings.
    """

    place: str | None
    command_config: str | None = None
    settings: str | None = None
    """A server.properties with the settings; by default that of ``place``, if it is one."""

    super_users: Sequence[str] = ()
    allow_everyone: bool = False
    cidr: bool = False
    groups_file: str | None = None
    """A groups file; by default that of the settings."""

    @property
    def has_settings(self) -> bool:
        """Whether a broker's settings are read, which name the super users."""
        return self.settings is not None or (self.place or "").endswith(_PROPERTIES)

    @property
    def knows_super_users(self) -> bool:
        """Whether the super users are known."""
        return self.has_settings or bool(self.super_users)

    def without_super_users(self, rules: Rules) -> Rules:
        """Return its rules without the super users and broker users that its settings name."""
        from aclbroker.acl.decisions import BrokerUsers

        return replace(rules, super_users=frozenset(self.super_users), broker_users=BrokerUsers())

    def rules(self) -> Rules:
        """Read all of it. Raises SourceError."""
        from aclbroker.acl.reasoning.rules import Rules

        acls, found = self._acls()
        rules = replace(found or Rules(), acls=acls)
        if self.settings is not None:
            rules = replace(_settings(self.settings), acls=acls)
        return replace(
            rules,
            super_users=rules.super_users | frozenset(self.super_users),
            allow_everyone_if_no_acl_found=(
                rules.allow_everyone_if_no_acl_found or self.allow_everyone
            ),
            cidr=rules.cidr or self.cidr,
            groups=rules.groups if self.groups_file is None else _groups(self.groups_file),
        )

    def _acls(self) -> tuple[list[AclBinding], Rules | None]:
        place = self.place
        if place is None or place.endswith(_PROPERTIES):
            return _of_store(place)
        if place.startswith((KAFKA, *_OF_FILES)):
            from aclbroker.cli.acl_source import described, of_place
            from aclbroker.pipeline.errors import InputError

            try:
                if not place.startswith(KAFKA):
                    return of_place(place), None
                return described(place.removeprefix(KAFKA), self.command_config).acls, None
            except InputError as error:
                raise SourceError(str(error)) from error
        from aclbroker.acl.files.policy import PolicyError
        from aclbroker.broker.urls import without_login
        from aclbroker.cli.acl_files import acls_of_file

        try:
            return acls_of_file(Path(place).read_bytes(), place).policy.acls, None
        except OSError as error:
            shown = without_login(place)
            raise SourceError(f"{shown}: {error.strerror or error}") from error
        except PolicyError as error:
            raise SourceError(str(error)) from error


def rules_beside(settings: str | None, groups_file: str | None) -> Rules:
    """Return what decides beside the ACLs: of a server.properties, and of a groups file.

    The latter is by default that of the former. Raises SourceError.
    """
    from aclbroker.acl.reasoning.rules import Rules

    rules = Rules() if settings is None else _settings(settings)
    return rules if groups_file is None else replace(rules, groups=_groups(groups_file))


def _of_store(config_file: str | None) -> tuple[list[AclBinding], Rules]:
    """Read the store of a configuration, and the settings of this."""
    from aclbroker.acl.reasoning.rules import Rules
    from aclbroker.acl.settings import authorizer_settings
    from aclbroker.broker.config import ConfigError, load
    from aclbroker.broker.stores import StoreError, path_of
    from aclbroker.broker.stores.reading import read_acls

    try:
        config = load(config_file)
    except ConfigError as error:
        raise SourceError("\n".join(error.problems)) from error
    path = path_of(config.store)
    if path is None:
        raise SourceError(f"aclbroker.store={config.store} has no file; name --bootstrap-server")
    try:
        acls, _ = read_acls(Path(path).resolve())
    except StoreError as error:
        raise SourceError(str(error)) from error
    found = authorizer_settings(config.properties)
    return acls, Rules(
        (),
        found.super_users,
        found.broker_users,
        found.allow_everyone_if_no_acl_found,
        found.cidr,
        _groups(config.groups_file),
    )


def _groups(path: str | None) -> Mapping[str, tuple[str, ...]]:
    """Read a groups file: the groups of each principal; of nobody without one."""
    from aclbroker.acl.files.groups import GroupsError, read_groups

    if not path:
        return {}
    try:
        return read_groups(path).by_principal()
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    except GroupsError as error:
        raise SourceError(str(error)) from error


def _settings(file: str) -> Rules:
    from aclbroker.acl.decisions import BrokerUsers
    from aclbroker.acl.reasoning.rules import Rules
    from aclbroker.pipeline.acls.broker_properties import (
        PropertiesError,
        client_properties,
        read_broker_properties,
    )

    try:
        found = read_broker_properties(file)
        groups_file = client_properties(file).get(_GROUPS_FILE)
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror or error}") from error
    except PropertiesError as error:
        raise SourceError(str(error)) from error
    return Rules(
        (),
        found.super_users,
        BrokerUsers(found.broker_users, found.broker_listener),
        found.allow_everyone_if_no_acl_found,
        found.cidr,
        _groups(groups_file),
    )


def add_source(parser: argparse.ArgumentParser, *, positional: Sequence[str] = ()) -> None:
    """Add the options of a source to a command, or its names of several sources."""
    if positional:
        for name in positional:
            parser.add_argument(
                name.lower(),
                metavar=name,
                help="a policy file, what kafka-acls.sh --list printed, a file of its commands, "
                "one of another tool, "
                "the server.properties (*.properties) of a broker whose store is read, "
                "kafka://HOST:PORT, sqlite:///FILE of a store, or kraft:///DIR with the metadata "
                "log of a KRaft controller",
            )
    else:
        place = parser.add_mutually_exclusive_group()
        place.add_argument(
            "--acls",
            metavar="FILE",
            help="a policy file, what kafka-acls.sh --list printed, a file of its commands, "
            "one of another tool, "
            "sqlite:///FILE, or kraft:///DIR",
        )
        place.add_argument(
            "--config",
            metavar="FILE",
            help="a broker's server.properties: its store and settings are read; the default",
        )
        place.add_argument(
            "--bootstrap-server", metavar="HOST:PORT", help="a broker that is asked for its ACLs"
        )
    parser.add_argument(
        "--command-config", metavar="FILE", help="a Kafka client's properties, to log in with"
    )
    add_beside(parser)
    parser.add_argument(
        "--super-user",
        dest="super_users",
        metavar="PRINCIPAL",
        type=principal,
        action="append",
        default=[],
        help="a super user, beside those of the settings; may be repeated",
    )
    parser.add_argument(
        "--allow-everyone-if-no-acl-found",
        action="store_true",
        help="as if that setting were true",
    )
    parser.add_argument(
        "--cidr", action="store_true", help="hosts of ACLs may be subnets (aclbroker.acl.host.cidr)"
    )


def add_beside(parser: argparse.ArgumentParser) -> None:
    """Add the options of what decides beside the ACLs of any source."""
    parser.add_argument(
        "--broker-properties",
        metavar="FILE",
        help="a server.properties with the super users and other settings that decide",
    )
    parser.add_argument(
        "--groups-file",
        metavar="FILE",
        help="who is in which group, instead of the file that the settings name",
    )


def source_of(options: argparse.Namespace, place: str | None = None) -> Source:
    """Return the source that parsed arguments describe; ``place`` is that of a positional one."""
    if place is None:
        place = options.acls or options.config
        if options.bootstrap_server is not None:
            place = KAFKA + options.bootstrap_server
        elif options.config is not None and not options.config.endswith(_PROPERTIES):
            raise SourceError(f"--config {options.config}: expected a file *{_PROPERTIES}")
        elif options.acls is not None and options.acls.endswith(_PROPERTIES):
            raise SourceError(f"--acls {options.acls}: expected a policy or a listing")
    return Source(
        place,
        options.command_config,
        options.broker_properties,
        options.super_users,
        options.allow_everyone_if_no_acl_found,
        options.cidr,
        options.groups_file,
    )


def principal(text: str) -> str:
    """Return a principal; raises ArgumentTypeError for a text without a type."""
    if ":" not in text:
        raise argparse.ArgumentTypeError(f"expected Type:name, such as User:alice, not {text!r}")
    return text
