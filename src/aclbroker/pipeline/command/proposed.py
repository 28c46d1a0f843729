"""The settings of the proposed side: those in force, but for what the options change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.broker_properties import BrokerSettings
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.command.options import Given
from aclbroker.pipeline.errors import InputError

NOBODY: Final = "none"
"""In place of a principal: there is none."""

_T = TypeVar("_T")


class ProposedSettings(NamedTuple):
    """What options propose, each for one cluster, or for all without one.

    ``properties`` take the place of all settings in force. The others take the place of one each,
    and go before ``properties``; of several for the same setting the last one counts, but
    principals are taken together.
    """

    properties: Sequence[tuple[str | None, BrokerSettings]] = ()
    super_users: Sequence[Given] = ()
    broker_users: Sequence[Given] = ()
    broker_listener: str | None = None
    allow_everyone: Sequence[tuple[str | None, bool]] = ()
    cidr: Sequence[tuple[str | None, bool]] = ()

    def clusters(self) -> list[tuple[str, str | None]]:
        """Return the option of each value, and the cluster that it is for."""
        return [
            *(("--proposed-properties", name) for name, _ in self.properties),
            *(("--proposed-super-user", each.cluster) for each in self.super_users),
            *(("--proposed-broker-user", each.cluster) for each in self.broker_users),
            *(
                ("--proposed-allow-everyone-if-no-acl-found", name)
                for name, _ in self.allow_everyone
            ),
            *(("--proposed-cidr", name) for name, _ in self.cidr),
        ]

    def of(self, cluster: str, rules: Ruleset) -> Ruleset:
        """Return the rules of a cluster with the proposed settings in place of those in force.

        Raises InputError if there are broker users, and no listener on which they are.
        """
        for file in _last(self.properties, cluster):
            rules = replace(
                rules,
                super_users=file.super_users,
                broker_users=_broker_users(file.broker_users, file.broker_listener),
                allow_everyone_if_no_acl_found=file.allow_everyone_if_no_acl_found,
                cidr=file.cidr,
            )
        users = rules.broker_users
        brokers = _principals(self.broker_users, cluster, users.principals)
        listener = self.broker_listener or users.listener
        if brokers and not listener:
            raise InputError(
                f"--proposed-broker-user needs --proposed-broker-listener NAME: cluster {cluster} "
                "has no broker users now"
            )
        default = rules.allow_everyone_if_no_acl_found
        return replace(
            rules,
            super_users=_principals(self.super_users, cluster, rules.super_users),
            broker_users=_broker_users(brokers, listener),
            allow_everyone_if_no_acl_found=(_last(self.allow_everyone, cluster) or [default])[0],
            cidr=(_last(self.cidr, cluster) or [rules.cidr])[0],
        )


def _broker_users(principals: frozenset[str], listener: str) -> BrokerUsers:
    return BrokerUsers(principals, listener) if principals else BrokerUsers()


def _last(given: Iterable[tuple[str | None, _T]], cluster: str) -> list[_T]:
    return [value for name, value in given if name in (None, cluster)][-1:]


def _principals(given: Iterable[Given], cluster: str, current: frozenset[str]) -> frozenset[str]:
    values = {each.value for each in given if each.cluster in (None, cluster)}
    return frozenset(values - {NOBODY}) if values else current
