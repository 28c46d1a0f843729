"""Whether grants let somebody do something on *any* topic (KIP-679), as idempotent producers ask.

That is no question about one resource. An ALLOW of any topic answers it, unless DENYs hold for all
names of that ALLOW, to the same principals at the same host. The broker's own authorizer decides,
with one ALLOW at a time beside all DENYs: which other ALLOWs there are does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from aclbroker.acl.authorizer import ANY_RESOURCE, Session
from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclPermission,
    ResourceType,
)
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.acl.reasoning.rules import matches
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import (
    LISTENER,
    SessionUse,
    granted_to,
    no_host_of,
)
from aclbroker.pipeline.analysis.proof import (
    Reading,
    as_given,
    is_overlooked,
    on_kafka,
    other_readings,
)

_TOPIC: Final = ResourceType.TOPIC

ARBITRARY: Final = "hardcode"
"""The topic that Kafka asks about first; who may do it there may do it on any."""


def parted(uses: Iterable[SessionUse]) -> tuple[list[SessionUse], list[SessionUse]]:
    """Return uses of single resources, and those that asked about any topic."""
    single: list[SessionUse] = []
    of_any: list[SessionUse] = []
    for use in uses:
        if use.resource_type is not _TOPIC or ANY_RESOURCE not in use.names:
            single.append(use)
            continue
        of_any.append(use._replace(names=(ANY_RESOURCE,)))
        names = [name for name in use.names if name != ANY_RESOURCE]
        if names:
            single.append(use._replace(names=names))
    return single, of_any


class AnyTopic:
    """What the ALLOWs of some rules, or others in their place, say of any topic.

    They say it under each of the ``readings`` of hosts: as they are given, and as a Kafka reads
    them. (What is not said to be a subnet tells no hosts of a log apart.)
    """

    def __init__(self, rules: Ruleset) -> None:
        on_topics = [acl for acl in rules.acls if acl.resource_type is _TOPIC]
        denies = rules.with_acls(acl for acl in on_topics if acl.permission is AclPermission.DENY)
        plain = replace(
            denies,
            super_users=frozenset(),
            broker_users=BrokerUsers(),
            allow_everyone_if_no_acl_found=False,
        )
        is_kafka_other = on_kafka in other_readings(rules)
        self.readings: Sequence[Reading] = (as_given, *([on_kafka] if is_kafka_other else []))
        self._cores = {each: each(plain).authorizer() for each in self.readings}
        self._nowhere = no_host_of(rules.acls)
        self._allows: dict[str, list[AclBinding]] = {}
        for acl in on_topics:
            if acl.permission is AclPermission.ALLOW:
                self._allows.setdefault(acl.principal, []).append(acl)
        self.is_open = rules.allow_everyone_if_no_acl_found and not any(
            matches(acl, _TOPIC, ARBITRARY) for acl in on_topics
        )
        """Whether everybody may do everything on any topic, as `ARBITRARY` has no ACL."""

    def suffices(self, acl: AclBinding, use: SessionUse, read: Reading) -> bool:
        """Tell whether an ALLOW of topics lets a session do on any topic what it used."""
        if read is on_kafka and is_overlooked(acl.host):
            return False
        host = self._nowhere if use.host is None else use.host
        core = self._cores[read]
        core.index.add(acl)
        session = Session(use.principals, host, LISTENER)
        decision = core.authorize_by_resource_type(session, use.operation, _TOPIC)
        core.index.remove(acl)
        return decision.allowed

    def kept(self, use: SessionUse, read: Reading) -> Iterator[AclBinding]:
        """Yield what can be kept of the current ALLOWs that let a session do it on any topic.

        It is an ALLOW on the same names and from the same hosts, of the one operation, to one of
        the session's principals.
        """
        for principal in dict.fromkeys((*use.principals, WILDCARD_PRINCIPAL)):
            for acl in self._allows.get(principal, ()):
                is_of_it = GRANTED_BY[use.operation] >> acl.operation & 1
                if is_of_it and self.suffices(acl, use, read):
                    who = granted_to(acl, use.principals)
                    if who != WILDCARD_PRINCIPAL:
                        yield acl._replace(principal=who, operation=use.operation)
