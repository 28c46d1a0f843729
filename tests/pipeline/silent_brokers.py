"""Random companies with all their use, and logs in which allowed events are missing at times."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import AclBinding, AclOperation, PatternType, ResourceType
from aclbroker.acl.files.policy import policy_text
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from tests.acl.examples import allow
from tests.pipeline.kafka_lines import line

START = datetime(2026, 3, 2, tzinfo=UTC)
CLUSTER = "c"
SUPER_USER = "User:kafka"

Span = tuple[datetime, datetime]


class Use(NamedTuple):
    """An allowed event of the full log."""

    at: datetime
    broker: int
    principal: str
    operation: AclOperation
    topic: str


class Company(NamedTuple):
    """A company's ACLs, all their uses, and the spans in which each broker logged allowed events.

    ``debug`` has these spans for each broker.
    """

    acls: tuple[AclBinding, ...]
    uses: list[Use]
    debug: list[list[Span]]
    end: datetime

    @property
    def is_silent(self) -> bool:
        """Whether any broker did not log its allowed events at some time."""
        return any(spans != [(START, self.end)] for spans in self.debug)

    def broken_by(self, remaining: Iterable[AclBinding]) -> list[Use]:
        """Return the uses, logged or not, that the remaining ACLs deny."""
        authorizer = Ruleset(ordered(remaining)).authorizer()
        return [
            use
            for use in self.uses
            if not authorizer.decisions(
                Session((use.principal,), "10.0.0.1", ""), use.operation, ResourceType.TOPIC
            )[use.topic].allowed
        ]


def company(chance: random.Random) -> Company:
    """Return a random company. Some of its ACLs are used all the time, some once, some never."""
    names = [f"{team}.{number}" for team in ("pay", "web", "log") for number in range(4)]
    acls = {
        allow(f"User:{chance.choice('abcdef')}", operation, name)
        for name in names
        for operation in chance.sample((AclOperation.READ, AclOperation.WRITE), 1)
    }
    acls.add(allow("User:a", AclOperation.ALL, "pay.", pattern_type=PatternType.PREFIXED))
    end = START + timedelta(days=chance.randint(2, 4))
    brokers = chance.randint(1, 3)
    uses = [
        use
        for acl in sorted(acls)
        for use in _uses(chance, acl, brokers, end, chance.choice((0, 1, 1, 30)))
    ]
    return Company(ordered(acls), uses, [_debug(chance, end) for _ in range(brokers)], end)


def _uses(
    chance: random.Random, acl: AclBinding, brokers: int, end: datetime, count: int
) -> Iterator[Use]:
    operation = AclOperation.READ if acl.operation is AclOperation.ALL else acl.operation
    topic = "pay.9" if acl.pattern_type is PatternType.PREFIXED else acl.resource_name
    for _ in range(count):
        at = _moment(chance, START, end)
        yield Use(at, chance.randrange(brokers), acl.principal, operation, topic)


def _moment(chance: random.Random, first: datetime, last: datetime) -> datetime:
    return first + chance.random() * (last - first)


def _debug(chance: random.Random, end: datetime) -> list[Span]:
    """Return the spans in which a broker's level is DEBUG.

    Mostly that is always; else it is late, never, for a while, or with a gap.
    """
    kind = chance.choice((*["always"] * 6, "late", "never", "while", "gap"))
    one, other = sorted(_moment(chance, START, end) for _ in range(2))
    spans: dict[str, list[Span]] = {
        "always": [(START, end)],
        "late": [(one, end)],
        "never": [],
        "while": [(one, other)],
        "gap": [(START, one), (other, end)],
    }
    return spans[kind]


def write(company: Company, place: Path, chance: random.Random) -> tuple[Path, Path]:
    """Write the log, one directory a broker, and the policy file. Return both places.

    As in Kafka, each broker allows its own requests all the time. A client is denied every few
    minutes. Files are rotated at random times.
    """
    log, acls = place / "log", place / "acls.yaml"
    acls.write_text("".join(policy_text(company.acls, CLUSTER)))
    for broker, spans in enumerate(company.debug):
        directory = log / f"broker-{broker}"
        directory.mkdir(parents=True)
        events = sorted(_events(company, broker, spans, chance))
        bounds = sorted({START, company.end, *(_cut(company, chance) for _ in range(2))})
        for first, last in pairwise(bounds):
            name = "kafka-authorizer.log"
            if last != company.end:
                name += f".{first:%Y-%m-%d-%H}"
            lines = [text for at, text in events if first <= at < last]
            with (directory / name).open("a") as file:
                file.writelines(f"{text}\n" for text in lines)
    return log, acls


def _cut(company: Company, chance: random.Random) -> datetime:
    hours = (company.end - START) // timedelta(hours=1)
    return START + timedelta(hours=chance.randrange(hours))


def _events(
    company: Company, broker: int, spans: list[Span], chance: random.Random
) -> Iterator[tuple[datetime, str]]:
    is_logged: Callable[[datetime], bool] = lambda at: any(a <= at < b for a, b in spans)  # noqa: E731
    for at in _every(timedelta(minutes=12), company.end, chance):
        yield at, _line(at, "User:mallory", "READ", "Topic:LITERAL:secret", None)
    for at in _every(timedelta(minutes=10), company.end, chance):
        if is_logged(at):
            yield at, _line(at, SUPER_USER, "CLUSTER_ACTION", "Cluster:LITERAL:kafka-cluster", "")
    for use in company.uses:
        if use.broker == broker and is_logged(use.at):
            acl = f"principal={use.principal}, host=*, operation={use.operation.name}"
            yield (
                use.at,
                _line(use.at, use.principal, use.operation.name, f"Topic:LITERAL:{use.topic}", acl),
            )


def _every(period: timedelta, end: datetime, chance: random.Random) -> Iterator[datetime]:
    at = START + chance.random() * period / 4
    while at < end:
        yield at
        at += chance.uniform(0.5, 1.5) * period


def _line(at: datetime, principal: str, operation: str, resource: str, acl: str | None) -> str:
    verdict = "is Denied operation" if acl is None else "is Allowed operation"
    rule = "DefaultDeny" if acl is None else "SuperUser"
    if acl:
        name = resource.rpartition(":")[2]
        rule = (
            f"MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName={name}, "
            f"patternType=LITERAL, {acl}, permissionType=ALLOW])"
        )
    return line(
        head=f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] "
        f"{'INFO' if acl is None else 'DEBUG'}",
        principal=principal,
        verdict=verdict,
        operation=operation,
        host="10.0.0.1",
        resource=resource,
        request=" for request = Fetch with resourceRefCount = 1",
        rule=f" based on rule {rule}",
    )
