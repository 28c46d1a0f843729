"""`AclBroker`: a cluster in memory with users and ACLs, for tests that run in the same process."""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.files.policy import Policy
from aclbroker.acl.files.reading import acls_of, read_acls
from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.handlers.faults import Fault, api_key, error_code
from aclbroker.broker.memory.placing import MOST_PARTITIONS
from aclbroker.broker.topic_configs import validate
from aclbroker.protocol.messages import ApiKey
from aclbroker.testing.clients import client_config
from aclbroker.testing.decisions import (
    Denial,
    EnforcingRights,
    Notes,
    Question,
    RecordingRights,
    auditing,
)
from aclbroker.testing.embedded import EmbeddedBroker

__all__ = ["AclBroker", "Denial"]

LISTENER: Final = "SASL_PLAINTEXT"
_JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_ADMIN: Final = "admin"
_TYPES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
_CONTEXT: Final = RequestContext(
    Session((f"User:{_ADMIN}",), "127.0.0.1", LISTENER),
    ApiKey.CREATE_ACLS,
    3,
    "aclbroker.testing",
    0,
)


_RESERVED: Final = (
    "aclbroker.cluster",
    "listener.security.protocol.map",
    "listeners",
    "plain.sasl.jaas.config",
    "plain.sasl.server.callback.handler.class",
    "sasl.enabled.mechanisms",
)
"""Settings that `client_config` relies on."""


class AclBroker:
    """A broker on free ports, in a thread of its own, from `start` to `stop` or in a ``with``.

    It is started once: after its end another one is made.

    ``policy`` is what may be done at first: the path or the text of a policy file
    (docs/policy.md), or ACLs. The super user ``admin`` may do everything, and nobody else anything
    more. With ``records`` everything is allowed, and `used` tells what was. ``topics`` maps names
    to numbers of partitions, and ``properties`` are settings of the broker (docs/configuration.md)
    beside those that are made here; ValueError for one that would change how clients log in.
    """

    def __init__(
        self,
        policy: str | Path | Iterable[AclBinding] = (),
        *,
        topics: Mapping[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
        nodes: int = 1,
        records: bool = False,
    ) -> None:
        self._policy = _acls_of(policy)
        self._topics = dict(topics or {})
        self._passwords = {_ADMIN: secrets.token_urlsafe(12)}
        self._notes = Notes(records)
        made = {
            "listeners": f"{LISTENER}://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
                f'{_JAAS} user_{_ADMIN}="{self._passwords[_ADMIN]}";'
            ),
            "super.users": f"User:{_ADMIN}",
            "aclbroker.store": "memory:",
            "aclbroker.cluster": "memory",
            "aclbroker.nodes": str(nodes),
            "aclbroker.shutdown.timeout.ms": "1000",
        }
        _refuse_reserved(made, properties or {})
        rights = RecordingRights if records else EnforcingRights
        self._broker = EmbeddedBroker(made | dict(properties or {}), auditing(self._notes), rights)

    def also(self, acls: Iterable[AclBinding]) -> None:
        """Have more ACLs from the start on; call it before `start`."""
        self._policy += acls

    def start(self) -> AclBroker:
        """Start, unless it runs already, and return this broker once clients are let in.

        Raises what keeps it from that, and RuntimeError if it has ended.
        """
        if self._broker.is_running:
            return self
        self._broker.start()
        try:
            for name, partitions in self._topics.items():
                self.create_topic(name, partitions)
            if self._policy:
                self._create(self._policy)
        except BaseException:
            # Nobody else would: it was not started.
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End; all that was kept is lost."""
        self._broker.stop()

    def __enter__(self) -> AclBroker:
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, separated by commas."""
        return self._broker.listeners[LISTENER]

    def password(self, user: str) -> str:
        """Return a user's password; a name that is new is a user from now on."""
        if user not in self._passwords:
            passwords = self._passwords | {user: secrets.token_urlsafe(12)}
            self._broker.call(self._broker.server.use_plain_users, {LISTENER: passwords})
            self._passwords = passwords
        return self._passwords[user]

    def client_config(self, user: str, client: str = "confluent") -> dict[str, Any]:
        """Return the settings with which a client logs in as a user, who need not exist before.

        ``client`` is ``confluent``, ``kafka-python``, ``aiokafka`` or ``java``; ValueError for any
        other.
        """
        return client_config(client, self.bootstrap_servers, user, self.password(user))

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, without asking anybody's rights.

        Raises ValueError for a name that no topic may have or that there is, for less than one
        partition or more than the cluster takes, and for a configuration that no topic may have;
        its values are texts, as in Kafka.
        """
        topics = self._broker.cluster.topics

        def create() -> None:
            if not is_topic_name(name) or partitions < 1:
                raise ValueError(f"no topic can have the name {name!r} and {partitions} partitions")
            if topics.exists(name):
                raise ValueError(f"there is a topic {name!r}")
            for key, value in (configs or {}).items():
                if not isinstance(value, str):
                    raise ValueError(f"the value of {key} is to be a text: {str(value)!r}")
            validate(configs or {}, topics.defaults)
            if topics.partitions + partitions > MOST_PARTITIONS:
                raise ValueError(f"a cluster in memory has at most {MOST_PARTITIONS} partitions")
            topics.create(name, partitions, configs)

        self._broker.call(create)

    def grant(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        cluster: bool = False,
        prefixed: bool = False,
        host: str = WILDCARD,
        deny: bool = False,
    ) -> list[AclBinding]:
        """Create an ACL for each operation on a resource, and return them.

        ``user`` is a user's name, or ``Type:name``. With ``prefixed`` the name is a prefix; with
        ``deny`` the operations are denied. Raises ValueError for what no ACL can say.
        """
        kind, name = _resource(cluster, topic=topic, group=group, transactional_id=transactional_id)
        pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
        permission = AclPermission.DENY if deny else AclPermission.ALLOW
        principal = user if ":" in user else f"User:{user}"
        acls = [
            AclBinding(kind, name, pattern, principal, host, _operation(each), permission)
            for each in operations
        ]
        self._create(acls)
        return acls

    def revoke(self, acls: Iterable[AclBinding]) -> None:
        """Remove ACLs, such as `grant` returned; one that is not there does no harm."""
        filters = [AclFilter(*acl) for acl in acls]
        self._broker.await_(self._broker.authorizer.delete_acls(_CONTEXT, filters))

    @property
    def is_recording(self) -> bool:
        """Whether everything is allowed and noted, so that no denial can be expected."""
        return self._notes.is_recording

    def denials(self) -> list[Denial]:
        """Return what was denied so far, with the smallest change of ACLs that would allow it.

        What a test is denied again and again is there once, and counted.
        """
        return self._notes.denials()

    def on_denial(self, called: Callable[[Denial], None]) -> None:
        """Set a function that is called with each denial that differs from those before.

        The call is in the broker's thread, so the function must return at once.
        """
        self._notes.on_denial = called

    def logins(self) -> int:
        """Return how many logins succeeded so far."""
        return self._broker.logins()

    def failed_logins(self) -> Mapping[str, int]:
        """Return how many logins failed so far, by the reason."""
        return self._broker.failed_logins()

    @property
    def denials_left_out(self) -> int:
        """How many denials `denials` lacks: it has 10,000 that differ at most."""
        return self._notes.left_out

    def forget_denials(self) -> None:
        """Have `denials` begin anew."""
        self._notes.forget_denials()

    def used(self) -> list[Question]:
        """Return what was allowed so far: by ACLs, or because all is recorded."""
        return [each for each in self._notes.used() if each.principal != f"User:{_ADMIN}"]

    def fail(
        self,
        request: str,
        error: str | None = None,
        *,
        count: int = 1,
        delay: float = 0.0,
        closes: bool = False,
    ) -> None:
        """Let the next ``count`` requests of an API key such as ``Produce`` fail, or wait.

        They are answered with the ``error`` of this name, such as ``NOT_LEADER_OR_FOLLOWER``, or
        their connection is closed; after ``delay`` seconds, or late without both. Faults of one key
        happen one after the other. Raises ValueError for what there is not.
        """
        fault = Fault(count, None if error is None else error_code(error), closes, delay)
        self._broker.call(self._broker.faults.add, api_key(request), fault)

    def forget_faults(self) -> None:
        """Let no request fail any more that was to."""
        self._broker.call(self._broker.faults.clear)

    @property
    def faults_url(self) -> str | None:
        """Where other programs ask for faults; None without ``aclbroker.faults.address``."""
        return self._broker.faults_url

    def advance(self, seconds: float) -> None:
        """Move the cluster's time forward: whatever waits for it, such as time-outs, is due."""
        self._broker.call(self._broker.cluster.clock.advance, round(seconds * 1000))

    def log(self) -> str:
        """Return the last lines of the broker's log."""
        return self._broker.log()

    def _create(self, acls: Iterable[AclBinding]) -> None:
        results = self._broker.await_(self._broker.authorizer.create_acls(_CONTEXT, list(acls)))
        for acl, result in zip(acls, results, strict=True):
            if result.error_code:
                raise ValueError(f"{acl} was refused: {result.error_message}")


def _refuse_reserved(made: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuse settings that would break the logins of `client_config`. Raises ValueError."""
    for name, value in given.items():
        bare = name.removeprefix(f"listener.name.{LISTENER.lower()}.")
        if bare not in _RESERVED or made.get(name) == value:
            continue
        how = f" (it is {made[name]})" if name in made and "jaas" not in name else ""
        raise ValueError(
            f"{name} cannot be set here{how}: clients are given one {LISTENER} listener with the "
            "mechanism PLAIN; for other listeners and mechanisms start aclbroker serve with "
            "aclbroker.cluster=memory"
        )


def _acls_of(policy: str | Path | Iterable[AclBinding]) -> list[AclBinding]:
    found: Policy
    if isinstance(policy, Path):
        found = read_acls(policy)
    elif isinstance(policy, str):
        # A path has no line breaks, and a policy at least one.
        found = acls_of(policy, "policy").policy if "\n" in policy else read_acls(policy)
    else:
        return list(policy)
    return list(found.acls)


def _resource(cluster: bool, **names: str | None) -> tuple[ResourceType, str]:
    given = {key: name for key, name in names.items() if name is not None}
    if len(given) + cluster != 1:
        raise ValueError(f"one resource is needed: one of {', '.join(_TYPES)}, or cluster=True")
    if cluster:
        return ResourceType.CLUSTER, CLUSTER_NAME
    [(key, name)] = given.items()
    return _TYPES[key], name


def _operation(name: str) -> AclOperation:
    known = AclOperation.__members__
    if name.upper() not in known:
        close = difflib.get_close_matches(name.upper(), known, n=5, cutoff=0)
        raise ValueError(f"operation {name!r} is not known; did you mean {', '.join(close)}?")
    found = known[name.upper()]
    if found <= AclOperation.ANY:
        raise ValueError(f"operation {name!r} can be asked for, and not be granted")
    return found
