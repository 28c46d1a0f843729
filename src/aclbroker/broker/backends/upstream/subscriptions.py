"""Subscriptions of group members by regular expression, resolved with the rights of the member.

A coordinator upstream would resolve them with the rights of the gateway (KIP-848), and assign
topics that the member may not see. The gateway therefore sends the names of the topics in place of
the expression. It sends them again when topics or rights have changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from aclbroker.acl.authorizer import Position
from aclbroker.broker.backends.upstream.topics import TopicDirectory
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups.group import GroupError
from aclbroker.broker.memory.groups.patterns import compiled
from aclbroker.broker.turns import wait
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from aclbroker.turns import in_turns

_MOST_MEMBERS: Final = 10_000
"""The most members that are remembered; the one that was silent for longest is forgotten."""

_MOST_NAMES: Final = 100
"""The most names beside a regular expression. No client of Kafka's sends both."""

_JOINS: Final = 0
"""The epoch with which a member joins a group; a lower one leaves it."""

_compiled = lru_cache(64)(compiled)
"""Compiles an expression, whose program can take 256 KiB, and remembers the last ones."""


@dataclass(slots=True)
class _Subscription:
    """The subscription of a member: its ``names`` and its regular expression ``pattern``.

    The last resolution was made for ``resolved_with`` topics, a position of ACLs and principals.
    Its names have the hash ``sent``, which is None if the coordinator's last answer was an error.
    """

    names: Sequence[str] = ()
    pattern: str = ""
    resolved_with: tuple[Sequence[str], Position | None, Sequence[str]] | None = None
    sent: bytes | None = None


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
        subscription = self._members.get(key)
        if request.member_epoch < _JOINS:
            self._members.pop(key, None)
            return request
        if subscription is None and not request.subscribed_topic_regex:
            return request
        subscription = _changed(subscription or _Subscription(), request)
        if not subscription.pattern:
            # The member has given the expression up, so that only its names are left.
            self._members.pop(key, None)
            return _with_names(request, subscription.names)
        self._remember(key, subscription)
        names = self._new_names(subscription, rights, request)
        return _with_names(request, names)

    def refused(self, request: ConsumerGroupHeartbeatRequest) -> None:
        """Note that the coordinator has answered a heartbeat with an error."""
        subscription = self._members.get((request.group_id, request.member_id))
        if subscription is not None:
            subscription.sent = subscription.resolved_with = None

    def _new_names(
        self,
        subscription: _Subscription,
        rights: RequestRights,
        request: ConsumerGroupHeartbeatRequest,
    ) -> Sequence[str] | None:
        """Return the names of all topics of a member; None if the coordinator has them."""
        topics = self._directory.listed()
        if not isinstance(topics, tuple):
            topics = wait(topics)
        position, joins = rights.position(), request.member_epoch == _JOINS
        resolved_with = topics, position, rights.context.session.principals
        is_same = position is not None and resolved_with == subscription.resolved_with
        if is_same and not joins:
            return None
        # As in Kafka the rights come first, so that the time reveals no hidden names.
        visible = rights.visible("show", topics)
        regex = _compiled(subscription.pattern)
        matching = [name for name in in_turns(visible) if regex.matches(name)]
        names = sorted({*matching, *subscription.names})
        sent = hashlib.blake2b("\n".join(names).encode()).digest()
        is_known = sent == subscription.sent and not joins
        subscription.resolved_with, subscription.sent = resolved_with, sent
        return None if is_known else names

    def _remember(self, key: tuple[str, str], subscription: _Subscription) -> None:
        self._members[key] = subscription
        self._members.move_to_end(key)
        if len(self._members) > _MOST_MEMBERS:
            self._members.popitem(last=False)


def _changed(subscription: _Subscription, request: ConsumerGroupHeartbeatRequest) -> _Subscription:
    """Return a subscription as a heartbeat changes it; raises `GroupError`."""
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    if names is None and pattern in (None, subscription.pattern):
        return subscription
    names = subscription.names if names is None else tuple(names)
    pattern = subscription.pattern if pattern is None else pattern
    if pattern:
        _compiled(pattern)
        if len(names) > _MOST_NAMES:
            raise GroupError(
                ErrorCode.INVALID_REQUEST,
                f"More than {_MOST_NAMES} topics beside a regular expression are not supported.",
            )
    return _Subscription(names, pattern)


def _with_names(
    request: ConsumerGroupHeartbeatRequest, names: Sequence[str] | None
) -> ConsumerGroupHeartbeatRequest:
    return dataclasses.replace(request, subscribed_topic_names=names, subscribed_topic_regex=None)
