"""Subscriptions of group members by regular expression, resolved with the rights of the member.

A coordinator upstream would resolve them with the rights of the gateway (KIP-848), and assign
topics that the member may not see. The gateway therefore sends the names of the topics in place of
the expression. It sends them again when topics or rights have changed.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from aclbroker.acl.authorizer import Position
from aclbroker.broker.backends.upstream.topics import TopicDirectory
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups.patterns import compiled
from aclbroker.broker.memory.name_regex import NameRegex
from aclbroker.broker.turns import wait
from aclbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from aclbroker.turns import in_turns

_MOST_MEMBERS: Final = 100_000
"""The most members that are remembered; the one that was silent for longest is forgotten."""

_JOINS: Final = 0
"""The epoch with which a member joins a group; a lower one leaves it."""


@dataclass(slots=True)
class _Subscription:
    """The subscription of a member, and the names that the coordinator has for it.

    The last resolution is ``resolved_from`` topics, the position of the ACLs and principals. Its
    result is ``matching``. The names ``sent`` are None if the coordinator's last answer was an
    error.
    """

    names: Sequence[str] = ()
    regex: NameRegex | None = None
    pattern: str = ""
    resolved_from: tuple[Sequence[str], Position | None, Sequence[str]] | None = None
    matching: Collection[str] = ()
    sent: frozenset[str] | None = None


class Subscriptions:
    """The members of all groups that subscribe by a regular expression."""

    def __init__(self, directory: TopicDirectory) -> None:
        self._directory = directory
        self._members: OrderedDict[tuple[str, str], _Subscription] = OrderedDict()

    def resolved(
        self, rights: RequestRights, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat with names of topics in place of a regular expression.

        It may wait for the list of topics. Raises `GroupError` for an invalid expression, and
        `UpstreamUnavailable`.
        """
        key = request.group_id, request.member_id
        known = self._members.pop(key, None)
        if request.member_epoch < _JOINS or (known is None and not request.subscribed_topic_regex):
            return request
        subscription = known or _Subscription()
        if request.subscribed_topic_names is not None:
            subscription.names = tuple(request.subscribed_topic_names)
        pattern = request.subscribed_topic_regex
        if pattern is not None and pattern != subscription.pattern:
            subscription.regex = compiled(pattern) if pattern else None
            subscription.pattern, subscription.resolved_from = pattern, None
        if subscription.regex is None:
            # The member has given the expression up, so that only its names are left.
            return self._with_names(request, subscription.names)
        self._remember(key, subscription)
        self._resolve(subscription, rights)
        names = frozenset((*subscription.names, *subscription.matching))
        is_told = names == subscription.sent and request.member_epoch > _JOINS
        subscription.sent = names
        return self._with_names(request, None if is_told else sorted(names))

    def refused(self, request: ConsumerGroupHeartbeatRequest) -> None:
        """Note that the coordinator has answered a heartbeat with an error."""
        subscription = self._members.get((request.group_id, request.member_id))
        if subscription is not None:
            subscription.sent = None

    def _resolve(self, subscription: _Subscription, rights: RequestRights) -> None:
        topics = self._directory.listed()
        if not isinstance(topics, tuple):
            topics = wait(topics)
        position = rights.position()
        resolved_from = topics, position, rights.context.session.principals
        if position is not None and resolved_from == subscription.resolved_from:
            return
        # As in Kafka the rights come first, so that the time reveals no hidden names.
        regex = subscription.regex
        if regex is not None:
            visible = rights.visible("show", topics)
            subscription.matching = [name for name in in_turns(visible) if regex.matches(name)]
        subscription.resolved_from = resolved_from

    def _with_names(
        self, request: ConsumerGroupHeartbeatRequest, names: Sequence[str] | None
    ) -> ConsumerGroupHeartbeatRequest:
        return dataclasses.replace(
            request, subscribed_topic_names=names, subscribed_topic_regex=None
        )

    def _remember(self, key: tuple[str, str], subscription: _Subscription) -> None:
        self._members[key] = subscription
        if len(self._members) > _MOST_MEMBERS:
            self._members.popitem(last=False)
