"""Random companies with their real requests, and text logs with every kind of damage."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.ingest.kafka_line import TAIL

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_NAMES = ("pay.in", "pay.out", "hr", "hr.pay", "orders", "orders.eu", "logs")
_APIS = {
    (_TOPIC, AclOperation.READ): "Fetch",
    (_TOPIC, AclOperation.WRITE): "Produce",
    (_TOPIC, AclOperation.DESCRIBE): "Metadata",
    (_GROUP, AclOperation.READ): "JoinGroup",
    (_GROUP, AclOperation.DESCRIBE): "FindCoordinator",
}
_BEGIN = datetime(2026, 3, 2)


class Question(NamedTuple):
    """A request of a principal for an operation on a resource."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    name: str


class Company:
    """The rules of a cluster, its real requests, and the bytes of its damaged log."""

    def __init__(self, seed: int) -> None:
        self._randomly = random.Random(f"20260302 {seed}")
        self._wrapped = self._randomly.random() < 0.3
        self._clock = _BEGIN
        self.rules = Ruleset(ordered({self._acl() for _ in range(self._randomly.randint(6, 30))}))
        self._authorizer = self.rules.authorizer()
        count = self._randomly.choice([60, 200, 400])
        popular = [self._question() for _ in range(self._randomly.randint(3, 12))]
        self.asked = [
            self._randomly.choice(popular) if self._randomly.random() < 0.95 else self._question()
            for _ in range(count)
        ]
        self.log = b"".join(self._damaged(list(map(self._line, self.asked))))

    def allows(self, question: Question, rules: Ruleset) -> bool:
        """Tell whether the rules allow a request."""
        session = Session((question.principal,), "10.0.0.1", "any")
        return rules.authorizer().authorize(session, *question[1:3], [question.name])[0].allowed

    def _principal(self) -> str:
        return (
            f"User:{self._randomly.choice(('app', 'app2', 'billing', 'etl', 'hr', 'old', 'web'))}"
        )

    def _acl(self) -> AclBinding:
        randomly = self._randomly
        kind, operation = randomly.choice(list(_APIS))
        name = randomly.choice((*_NAMES, "pay.", "hr", "orders", "*"))
        is_prefix = name != "*" and randomly.random() < 0.4
        return AclBinding(
            kind,
            name,
            PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
            "User:*" if randomly.random() < 0.05 else self._principal(),
            "*",
            AclOperation.ALL if randomly.random() < 0.1 else operation,
            AclPermission.DENY if randomly.random() < 0.1 else AclPermission.ALLOW,
        )

    def _question(self) -> Question:
        kind, operation = self._randomly.choice(list(_APIS))
        return Question(self._principal(), operation, kind, self._randomly.choice(_NAMES))

    def _line(self, asked: Question) -> bytes:
        session = Session((asked.principal,), "10.0.0.1", "any")
        (decision,) = self._authorizer.authorize(session, *asked[1:3], [asked.name])
        rule = "DefaultDeny"
        acl = decision.rule.binding
        if acl is not None:
            rule = (
                f"MatchingAcl(acl=StandardAcl[resourceType={acl.resource_type.name}, "
                f"resourceName={acl.resource_name}, patternType={acl.pattern_type.name}, "
                f"principal={acl.principal}, host=*, operation={acl.operation.name}, "
                f"permissionType={acl.permission.name}])"
            )
        return self._text(asked, decision.allowed, rule).encode()

    def _text(self, asked: Question, allowed: bool, rule: str) -> str:
        self._clock += timedelta(seconds=self._randomly.randint(0, 60))
        principal = asked.principal
        if self._wrapped and principal in ("User:app", "User:etl"):
            session = self._randomly.randrange(10**9)
            principal = (
                f"OAuthKafkaPrincipal({principal}, groups: null, session: {session}, token: a**z)"
            )
        level, verdict = ("DEBUG", "Allowed") if allowed else ("INFO", "Denied")
        return (
            f"[{self._clock:%Y-%m-%d %H:%M:%S},000] {level} Principal = {principal} is {verdict} "
            f"operation = {asked.operation.name} from host = 10.0.0.1 on resource = "
            f"{asked.resource_type.name.title()}:LITERAL:{asked.name} for request = "
            f"{_APIS[asked[2], asked[1]]} with resourceRefCount = 1 based on rule {rule}{TAIL}"
        )

    def _damaged(self, lines: list[bytes]) -> Iterator[bytes]:
        randomly = self._randomly
        often = randomly.choice([0.0, 0.005, 0.01, 0.03, 0.1])
        for line in lines:
            if randomly.random() < often:
                yield randomly.choice([self._forged, self._noise])()
            if randomly.random() < often:
                yield self._broken(line)
            else:
                yield line + b"\n"
            if randomly.random() < often:
                yield self._forged()

    def _broken(self, line: bytes) -> bytes:
        """Return a line as damaged by a crash, a full disk or a shipper."""
        at = self._randomly.randrange(len(line))
        return self._randomly.choice(
            [
                line[:at] + b"\n",
                line[:at],
                line + b" \n",
                line + b"\r\n",
                bytes(at) + line + b"\n",
                line[:at] + b"\xff" + line[at + 1 :] + b"\n",
                line[at:] + b"\n",
                line[:at] + b"\n" + line[at:] + b"\n",
                line[:at] + bytes(20) + b"\n",
            ]
        )

    def _forged(self) -> bytes:
        """Return the lines that a client without rights causes by a group id with line breaks."""
        denied = self._text(
            Question("User:mallory", AclOperation.READ, _GROUP, "@"), False, "DefaultDeny"
        )
        begin, _, end = denied.partition("@")
        forged = [
            self._text(self._question(), self._randomly.random() < 0.5, "DefaultDeny")
            for _ in range(self._randomly.randrange(4))
        ]
        last = self._randomly.choice(
            ["y", begin + "y", "", self._text(self._question(), True, "X")]
        )
        return ("\n".join([f"{begin}x", *forged, last]) + end + "\n").encode()

    def _noise(self) -> bytes:
        """Return a line that is no decision, as a Kafka log may have it."""
        head = f"[{self._clock:%Y-%m-%d %H:%M:%S},000]"
        return self._randomly.choice(
            [
                b"\n",
                b"\tat kafka.server.KafkaApis.handle(KafkaApis.scala:80)\n",
                f"{head} INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n".encode(),
                f"{head} DEBUG No acl found for resource ResourcePattern(resourceType=TOPIC, "
                f"name=a, patternType=LITERAL), authorized = false{TAIL}\n".encode(),
            ]
        )
