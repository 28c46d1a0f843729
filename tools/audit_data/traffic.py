"""Who asks for what: the habits of principals, and requests that nobody foresaw.

A principal mostly repeats what its ACLs are for, from the hosts it has; now and then it asks for
something else, which is mostly denied. What is decided is never made up: `broker.acl` decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import Action, Session
from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import supported_operations
from tools.audit_data.lines import LISTENER, Asked, Form, Template
from tools.audit_data.world import SUPER_USER, World, hosts_of, team_of, transactional_id

_STRAY_SHARE = 0.05
_SUPER_USER_SHARE = 0.01
_MOST_ACLS = 12
_MOST_TEMPLATES = 250_000
_NAMES_OF_PREFIX = 2
_UNNAMED_HOST: Final = "100.64.0.0"
"""Stands for all hosts that no ACL names, such as those that come once (100.64.0.0/10)."""

_Op = AclOperation
_Type = ResourceType

_APIS: Final[Mapping[tuple[ResourceType, AclOperation], tuple[tuple[str, int], ...]]] = {
    (_Type.TOPIC, _Op.READ): (("Fetch", 17), ("Fetch", 13), ("OffsetCommit", 9)),
    (_Type.TOPIC, _Op.WRITE): (("Produce", 12), ("Produce", 9)),
    (_Type.TOPIC, _Op.CREATE): (("CreateTopics", 7),),
    (_Type.TOPIC, _Op.DELETE): (("DeleteTopics", 6),),
    (_Type.TOPIC, _Op.ALTER): (("CreatePartitions", 3),),
    (_Type.TOPIC, _Op.DESCRIBE): (("Metadata", 12), ("ListOffsets", 9)),
    (_Type.GROUP, _Op.READ): (("Heartbeat", 4), ("JoinGroup", 9), ("OffsetCommit", 9)),
    (_Type.GROUP, _Op.DELETE): (("DeleteGroups", 2),),
    (_Type.GROUP, _Op.DESCRIBE): (("FindCoordinator", 6), ("OffsetFetch", 9)),
    (_Type.CLUSTER, _Op.CREATE): (("CreateTopics", 7),),
    (_Type.CLUSTER, _Op.ALTER): (("CreateAcls", 3),),
    (_Type.CLUSTER, _Op.DESCRIBE): (("DescribeAcls", 3),),
    (_Type.CLUSTER, _Op.CLUSTER_ACTION): (("WriteTxnMarkers", 1), ("ControlledShutdown", 3)),
    (_Type.CLUSTER, _Op.IDEMPOTENT_WRITE): (("InitProducerId", 5),),
    (_Type.TRANSACTIONAL_ID, _Op.WRITE): (("AddPartitionsToTxn", 3), ("EndTxn", 4)),
    (_Type.TRANSACTIONAL_ID, _Op.DESCRIBE): (("FindCoordinator", 6),),
    (_Type.TRANSACTIONAL_ID, _Op.TWO_PHASE_COMMIT): (("InitProducerId", 6),),
    (_Type.DELEGATION_TOKEN, _Op.DESCRIBE): (("DescribeDelegationToken", 3),),
    (_Type.USER, _Op.CREATE_TOKENS): (("CreateDelegationToken", 3),),
    (_Type.USER, _Op.DESCRIBE_TOKENS): (("DescribeDelegationToken", 3),),
}
_CONFIG_APIS: Final = {
    _Op.DESCRIBE_CONFIGS: (("DescribeConfigs", 4),),
    _Op.ALTER_CONFIGS: (("IncrementalAlterConfigs", 1),),
}
_SUPER_ACTIONS: Final = (
    (_Op.CLUSTER_ACTION, _Type.CLUSTER, CLUSTER_NAME),
    (_Op.ALTER, _Type.CLUSTER, CLUSTER_NAME),
    (_Op.DESCRIBE, _Type.CLUSTER, CLUSTER_NAME),
)

_Action = tuple[AclOperation, ResourceType, str]


class Event(NamedTuple):
    """One event without its time: the rest of its line."""

    template: Template
    host: str
    reference_count: int
    correlation_id: int


@dataclass(slots=True)
class _Habits:
    """What a principal does, the most frequent first, and the templates of what it has done.

    ``named_hosts`` are the hosts that matter to what it may do; all others are one to its ACLs.
    """

    principals: tuple[str, ...]
    hosts: tuple[str, ...]
    named_hosts: set[str]
    actions: list[_Action]
    sessions: dict[str, Session] = field(default_factory=dict)
    templates: dict[tuple[int, str], Template] = field(default_factory=dict)
    correlation_id: int = 0


class Traffic:
    """Draws events of a cluster, decided by its ACLs; the same ones for the same seed.

    ``ephemeral_hosts`` is the share, 0 to 1, of events that come from a host of their own, as those
    of containers do. ``group_members`` is the share of principals whose sessions have a second
    principal. Memory does not grow with the number of events.
    """

    def __init__(
        self,
        world: World,
        acls: Iterable[AclBinding],
        form: Form,
        seed: int,
        *,
        ephemeral_hosts: float = 0.0,
        group_members: float = 0.0,
    ) -> None:
        self._world = world
        self._form = form
        self._seed = seed
        self._random = Random(f"traffic {seed}")
        # Its own, so that the events are the same in however many calls they are drawn.
        self._who = Random(f"who {seed}")
        self._ephemeral_hosts = ephemeral_hosts
        self._group_members = group_members
        self._acls: dict[str, list[AclBinding]] = defaultdict(list)
        self._hosts: dict[str, set[str]] = defaultdict(set)
        index = AclIndex()
        for acl in acls:
            index.add(acl)
            self._acls[acl.principal].append(acl)
            if acl.host != WILDCARD:
                self._hosts[acl.principal].add(acl.host)
        if any(host.startswith("100.") for host in index.hosts()):
            raise ValueError("an ACL names a host in 100.64.0.0/10, which are to come once")
        self._authorizer = StandardAuthorizerData(index, (SUPER_USER,))
        self._habits: dict[int, _Habits] = {}
        self._templates = 0
        self.ephemeral_events = 0
        """How many events came from a host of their own."""

    def draw(self, count: int) -> Iterator[Event]:
        """Yield so many events."""
        random = self._random
        drawn = random.random
        ephemeral = self._ephemeral_hosts
        for number in self._world.principal_use.draw(self._who, count):
            if drawn() < _SUPER_USER_SHARE:
                number = -1
            habits = self._habits.get(number) or self._learn(number)
            habits.correlation_id += 1
            if ephemeral and drawn() < ephemeral:
                self.ephemeral_events += 1
                bits = random.getrandbits(22)
                host = f"100.{64 + (bits >> 16)}.{bits >> 8 & 255}.{bits & 255}"
                decided_as = _UNNAMED_HOST
            else:
                host = habits.hosts[int(len(habits.hosts) * drawn())]
                decided_as = host if host in habits.named_hosts else _UNNAMED_HOST
            if habits.actions and drawn() >= _STRAY_SHARE:
                # The cube makes the first habits the frequent ones.
                place = int(len(habits.actions) * drawn() ** 3)
                template = habits.templates.get((place, decided_as))
                if template is None:
                    template = self._decide(number, habits, decided_as, habits.actions[place])
                    self._remember(habits, (place, decided_as), template)
            else:
                template = self._decide(number, habits, decided_as, self._stray())
            reference_count = 1 if drawn() < 0.7 else 2 + int(drawn() * 11)
            yield Event(template, host, reference_count, habits.correlation_id)

    def _remember(self, habits: _Habits, key: tuple[int, str], template: Template) -> None:
        if self._templates >= _MOST_TEMPLATES:
            for each in self._habits.values():
                each.templates.clear()
            self._templates = 0
        habits.templates[key] = template
        self._templates += 1

    def _decide(self, number: int, habits: _Habits, host: str, action: _Action) -> Template:
        session = habits.sessions.get(host)
        if session is None:
            session = habits.sessions[host] = Session(habits.principals, host, LISTENER)
        operation, resource_type, name = action
        decision = self._authorizer.decide(session, Action(operation, resource_type, name))
        return self._form.template(self._asked(number, session.principals, action), decision)

    def event(self, asked: Asked, host: str) -> Event:
        """Return one event of a request that is told, decided like the others."""
        session = Session(asked.principals, host, LISTENER)
        action = Action(asked.operation, asked.resource_type, asked.name)
        template = self._form.template(asked, self._authorizer.decide(session, action))
        return Event(template, host, 1, 1)

    def _asked(self, number: int, principals: tuple[str, ...], action: _Action) -> Asked:
        operation, resource_type, name = action
        apis = _APIS.get((resource_type, operation)) or _CONFIG_APIS[operation]
        # Of the name's length, so that the choice is the same however often a template is made.
        api, version = apis[(number + len(name)) % len(apis)]
        quietly = api == "Metadata" and number % 2 == 0
        client_id = f"client-{number % 500}"
        node_id = 1 + number % 3
        return Asked(principals, *action, api, version, client_id, node_id, quietly)

    def _principals(self, number: int) -> tuple[str, ...]:
        if number < 0:
            return (SUPER_USER,)
        principal = self._world.principals[number]
        # Spread evenly: a member each time the share's multiples pass a whole number.
        share = self._group_members
        if int((number + 1) * share) > int(number * share):
            return principal, team_of(number)
        return (principal,)

    def _learn(self, number: int) -> _Habits:
        """Make up the habits of a principal, the same ones each time."""
        principals = self._principals(number)
        named = set[str]().union(
            *(self._hosts.get(each, ()) for each in (*principals, WILDCARD_PRINCIPAL))
        )
        hosts: tuple[str, ...]
        if number < 0:
            hosts, actions = ("10.255.0.1", "10.255.0.2"), list(_SUPER_ACTIONS)
        else:
            hosts = hosts_of(number)
            actions = self._actions(principals, Random(f"habits {self._seed} {number}"))
        habits = self._habits[number] = _Habits(
            principals, hosts, named.intersection(hosts), actions
        )
        return habits

    def _actions(self, principals: tuple[str, ...], random: Random) -> list[_Action]:
        acls = [acl for principal in principals for acl in self._acls.get(principal, ())]
        if len(acls) > _MOST_ACLS:
            acls = random.sample(acls, _MOST_ACLS)
        actions: dict[_Action, None] = {}
        for acl in acls:
            for name in self._names(acl, random):
                operation = acl.operation
                if operation is _Op.ALL:
                    operation = random.choice(supported_operations(acl.resource_type))
                actions[operation, acl.resource_type, name] = None
                if operation in (_Op.READ, _Op.WRITE) and acl.resource_type in _DESCRIBED:
                    actions[_Op.DESCRIBE, acl.resource_type, name] = None
        found = list(actions)
        random.shuffle(found)
        return found

    def _names(self, acl: AclBinding, random: Random) -> Iterable[str]:
        """Return names of resources that an ACL is about."""
        if acl.pattern_type is PatternType.LITERAL and acl.resource_name != WILDCARD:
            return (acl.resource_name,)
        prefix = "" if acl.resource_name == WILDCARD else acl.resource_name
        if acl.resource_type in _DESCRIBED:
            found = self._world.names_with(acl.resource_type, prefix, 200)
            return random.sample(found, min(_NAMES_OF_PREFIX, len(found)))
        if prefix:
            return (f"{prefix}-1",)
        return (transactional_id(random.randrange(self._world.sizes.principals)),)

    def _stray(self) -> _Action:
        """Draw an action that has nothing to do with anybody's ACLs."""
        random = self._random
        if random.random() < 0.3:
            name = self._world.groups[self._world.group_use.draw(random, 1)[0]]
            return random.choice((_Op.READ, _Op.DESCRIBE)), _Type.GROUP, name
        name = self._world.topics[self._world.topic_use.draw(random, 1)[0]]
        return random.choice(_STRAY_OPERATIONS), _Type.TOPIC, name


_DESCRIBED: Final = (_Type.TOPIC, _Type.GROUP)
_STRAY_OPERATIONS: Final = (_Op.DESCRIBE, _Op.DESCRIBE, _Op.READ, _Op.READ, _Op.WRITE, _Op.CREATE)
