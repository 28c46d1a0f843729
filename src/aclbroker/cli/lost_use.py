"""What of the use in a log a new set of ACLs takes away: the events behind each right it loses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.acl.authorizer import ANY_RESOURCE, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.reasoning.difference import Compared
from aclbroker.acl.reasoning.places import Places
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.cli.rules_source import SourceError
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.replay.hosts import Hosts

if TYPE_CHECKING:
    from aclbroker.pipeline.usage.stored import Used

_NO_PYARROW: Final = (
    "--usage reads Parquet with pyarrow, which is not installed ({}): in a checkout of aclbroker "
    "run make setup-audit, or pip install '.[audit]'"
)


@dataclass
class Use:
    """The events that did what is lost, by whom; ``example`` is what was done most."""

    events: int = 0
    loud_events: int = 0
    last_day: date = date.min
    by: Counter[str] = field(default_factory=Counter)
    example: Request | None = None
    most: int = 0

    def add(self, asked: _Asked, counts: _Counts) -> None:
        """Add the events of one question."""
        self.events += counts.events
        self.loud_events += counts.loud_events
        self.last_day = max(self.last_day, counts.last_day)
        self.by[asked.principals[0]] += counts.events
        if counts.events > self.most:
            self.most = counts.events
            self.example = asked.request(counts.host)


class LostUse(NamedTuple):
    """The use of lost rights, by the number of the difference, and the use of no difference.

    ``besides`` has the latter: of sessions that only several principals together allow something,
    about any topic, and of broker users. ``days`` is the number of days that were read; on
    ``silent_days`` the log has events, but no allowed one.
    """

    of_differences: Mapping[int, Use]
    besides: Mapping[Besides, Use]
    days: int
    last_day: date
    silent_days: Sequence[date] = ()


class Besides(NamedTuple):
    """What a session with some principals asked."""

    principals: tuple[str, ...]
    operation: AclOperation
    resource_type: ResourceType
    name: str


class _Asked(NamedTuple):
    """A question that an authorizer can tell apart from others."""

    principals: tuple[str, ...]
    listener: str
    host_class: str | None
    operation: AclOperation
    resource_type: ResourceType
    name: str

    def request(self, host: str) -> Request:
        return Request(self.principals[0], host, *self[3:])

    @property
    def is_of_any_topic(self) -> bool:
        return self.name == ANY_RESOURCE and self.resource_type is ResourceType.TOPIC


@dataclass
class _Counts:
    host: str
    events: int = 0
    loud_events: int = 0
    last_day: date = date.min


def lost_use(
    old: Rules, new: Rules, compared: Compared, place: str, days: int, cluster: str | None
) -> LostUse:
    """Return the use of what is lost from the old rules to the new ones, in the last ``days``.

    ``place`` is a directory of tables, whose last day counts as the last. Raises SourceError if it
    cannot be read.
    """
    try:
        from aclbroker.pipeline.errors import InputError
        from aclbroker.pipeline.usage.stored import StoredUsage
    except ImportError as error:
        raise SourceError(_NO_PYARROW.format(error)) from error
    try:
        usage = StoredUsage(place, days, cluster)
        flipped = _flipped(old, new, _questions(usage.allowed(), old, new))
        placed = _placed(flipped, compared)
        return LostUse(*placed, days, usage.last_day, usage.silent_days)
    except InputError as error:
        raise SourceError(str(error)) from error


def _questions(found: Iterable[Used], old: Rules, new: Rules) -> dict[_Asked, _Counts]:
    """Return what was asked, with hosts that no ACL tells apart taken together."""
    hosts = Hosts(Ruleset(tuple(each.acls), cidr=each.cidr) for each in (old, new))
    classes: dict[str, str | None] = {}
    sessions: dict[tuple[str, str | None], tuple[str, ...]] = {}
    questions: dict[_Asked, _Counts] = {}
    for used in found:
        if used.resource_name is None:
            continue
        if used.host not in classes:
            classes[used.host] = hosts.class_of(used.host)
        who = used.principal, used.others
        if who not in sessions:
            sessions[who] = (used.principal, *json.loads(used.others or "[]"))
        asked = _Asked(
            sessions[who],
            used.listener or "",
            classes[used.host],
            AclOperation[used.operation],
            ResourceType[used.resource_type],
            used.resource_name,
        )
        counts = questions.get(asked)
        if counts is None:
            counts = questions[asked] = _Counts(used.host)
        counts.events += used.events
        counts.loud_events += used.loud_events
        counts.last_day = max(counts.last_day, used.last_day)
    return questions


def _flipped(
    old: Rules, new: Rules, questions: Mapping[_Asked, _Counts]
) -> Iterator[tuple[_Asked, _Counts]]:
    """Yield the questions that are allowed by the old rules, and denied by the new ones."""
    before, after = old.authorizer(), new.authorizer()
    sessions: dict[tuple[tuple[str, ...], str, str | None], Session] = {}
    for asked, counts in questions.items():
        who = asked[:3]
        session = sessions.get(who)
        if session is None:
            session = sessions[who] = Session(asked.principals, counts.host, asked.listener)
        if _allows(before, session, asked) and not _allows(after, session, asked):
            yield asked, counts


def _allows(authorizer: StandardAuthorizerData, session: Session, asked: _Asked) -> bool:
    _, _, _, operation, resource_type, name = asked
    if asked.is_of_any_topic:
        return authorizer.authorize_by_resource_type(session, operation, resource_type).allowed
    return authorizer.decisions(session, operation, resource_type)[name].allowed


def _placed(
    flipped: Iterable[tuple[_Asked, _Counts]], compared: Compared
) -> tuple[dict[int, Use], dict[Besides, Use]]:
    """Add up what each difference takes away, and what is of none."""
    lost = [number for number, each in enumerate(compared.differences) if not each.is_gained]
    places = Places([compared.differences[number] for number in lost])
    found: dict[int, Use] = {}
    besides: dict[Besides, Use] = {}
    for asked, counts in flipped:
        place = _place(places, asked, counts.host)
        if place is None:
            use = besides.setdefault(Besides(asked.principals, *asked[3:]), Use())
        else:
            use = found.setdefault(lost[place], Use())
        use.add(asked, counts)
    return found, besides


def _place(places: Places, asked: _Asked, host: str) -> int | None:
    """Return the difference that a session meets by one of its principals."""
    if asked.is_of_any_topic:
        return None
    request = asked.request(host)
    found = (places.find(request._replace(principal=each)) for each in asked.principals)
    return next((place for place in found if place is not None), None)


Row = dict[str, Any]


def used_row(use: Use | None) -> Row:
    """Return the fields that tell of the use of a difference; None is one that is not used."""
    use = use or Use()
    return {
        "used_events": use.events,
        "used_loud_events": use.loud_events,
        "used_last_day": use.last_day.isoformat() if use.events else None,
        "used_by": [principal for principal, _ in use.by.most_common()],
        "used_example": None if use.example is None else str(use.example),
    }


def used_line(use: Use) -> str:
    """Return the line that tells of the use of a difference."""
    by = _listed([principal for principal, _ in use.by.most_common()])
    quiet = "" if use.loud_events else " that only filtered answers"
    events = "event" if use.events == 1 else "events"
    return (
        f"    used: {use.events:,} {events}{quiet}, the last on {use.last_day}, by {by}; "
        f"such as {use.example}"
    )


def besides_row(asked: Besides, use: Use) -> Row:
    """Return a row as of a difference for what is of none."""
    return {
        "change": "lost",
        "principals": " with ".join(asked.principals),
        "operations": [asked.operation.name],
        "resource_type": asked.resource_type.name,
        "pattern_type": "LITERAL",
        "name": asked.name,
        "but": [],
        "hosts": [] if use.example is None else [use.example.host],
        "example": None if use.example is None else str(use.example),
    }


def summary(compared: Compared, use: LostUse) -> str:
    """Return one sentence: how many rights are lost, and how many of these were used by whom."""
    lost = sum(not each.is_gained for each in compared.differences)
    used = len(use.of_differences)
    days = f"in the {use.days} days to {use.last_day}"
    if not lost:
        return "lost: nothing by one principal alone" if use.besides else "lost: nothing"
    rights = "1 right" if lost == 1 else f"{lost:,} rights"
    if not used:
        return f"lost: {rights}, {'not' if lost == 1 else 'none of them'} used {days}"
    by: Counter[str] = Counter()
    for each in use.of_differences.values():
        by.update(each.by)
    some = "" if lost == 1 else f"{used:,} of them "
    return f"lost: {rights}, {some}used {days} by {_listed([each for each, _ in by.most_common()])}"


def notes(use: LostUse) -> list[str]:
    """Return the reasons to doubt "not used", as lines for standard error."""
    if not use.silent_days:
        return []
    days = "1 day" if len(use.silent_days) == 1 else f"{len(use.silent_days):,} days"
    return [
        f"on {days} of the log ({_listed([str(day) for day in use.silent_days])}) no allowed event "
        "was logged, so a right that was used then is told as not used. Set the level of Kafka's "
        "kafka.authorizer.logger to DEBUG, or aclbroker.audit.level=all here"
    ]


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Return some names as words, with the number of the others."""
    rest = len(names) - most
    shown = ", ".join(names[:most])
    return shown if rest <= 0 else f"{shown} and {rest:,} more"
