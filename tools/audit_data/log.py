"""The log: events in the order of time, over days that have busy hours, cut into files."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from io import TextIOWrapper
from itertools import cycle, islice
from math import cos, pi
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final

from tools.audit_data.forgery import Forgery, forge, kinds_of
from tools.audit_data.lines import Form, Kind
from tools.audit_data.traffic import Traffic

_AT_ONCE: Final = 10_000
_HOUR: Final = 3600 * 1_000_000  # microseconds


class Truth:
    """What the log really holds, counted while it is written."""

    def __init__(self) -> None:
        self.days: dict[str, Counter[Kind]] = defaultdict(Counter)
        """By day, the events of each kind that are lines of their own."""
        self.forged: Counter[str] = Counter()
        self.unreliable_lines = 0
        """Lines that must not be taken for events."""

    def count_forgery(self, day: str, forgery: Forgery) -> None:
        """Count an attempt; its true event counts if the log tells it."""
        self.forged[forgery.name] += 1
        if forgery.kind is None:
            self.unreliable_lines += forgery.text.count("\n")
        else:
            self.days[day][forgery.kind] += 1

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        allowed = self._by("allowed")
        events = sum(allowed.values())
        return {
            "events": events,
            "allowed": allowed[True],
            "denied": allowed[False],
            "lines": events + self.unreliable_lines,
            "unreliable_lines": self.unreliable_lines,
            "forged": dict(self.forged),
            **{f"by_{name}": dict(self._by(name)) for name in Kind._fields[1:]},
            "by_day": {
                day: {
                    "allowed": sum(n for kind, n in kinds.items() if kind.allowed),
                    "denied": sum(n for kind, n in kinds.items() if not kind.allowed),
                }
                for day, kinds in self.days.items()
            },
        }

    def _by(self, name: str) -> Counter[Any]:
        counts: Counter[Any] = Counter()
        for kinds in self.days.values():
            for kind, number in kinds.items():
                counts[getattr(kind, name)] += number
        return counts


def write_log(
    paths: list[Path],
    traffic: Traffic,
    form: Form,
    *,
    events: int,
    first_day: date,
    days: int,
    forged: int,
    seed: int,
) -> Truth:
    """Write a log of so many events over so many days, in files of as many events each.

    Attempts to forge come on top of the events, at even distances, of each kind in turn. Names that
    end in .gz are compressed. Raises OSError.
    """
    truth = Truth()
    per_file = -(-events // len(paths))
    times = _times(form, events, first_day, days, Random(f"times {seed}"))
    due = _due(events, forged)
    kinds = cycle(kinds_of(form))
    written = 0
    for path in paths:
        with _Output(path) as output:
            for size in _chunks(min(per_file, events - written)):
                written += size
                lines: list[str] = []
                drawn = zip(traffic.draw(size), times, due, strict=False)
                for event, (day, second, micros), attempts in drawn:
                    lines.append(form.line(second, micros, *event))
                    truth.days[day][event.template.kind] += 1
                    for name in islice(kinds, attempts):
                        forgery = forge(name, traffic, form, second, micros)
                        lines.append(forgery.text)
                        truth.count_forgery(day, forgery)
                output.write("".join(lines))
    return truth


def _due(events: int, forged: int) -> Iterator[int]:
    """Yield for each event how many attempts to forge come after it."""
    for number in range(events):
        yield (number + 1) * forged // events - number * forged // events


def _chunks(total: int) -> Iterator[int]:
    while total > 0:
        yield min(total, _AT_ONCE)
        total -= _AT_ONCE


def _times(
    form: Form, events: int, first_day: date, days: int, random: Random
) -> Iterator[tuple[str, str, int]]:
    """Yield for each event its day, how its line begins within its second, and its microseconds."""
    for start, count in _hours(events, first_day, days):
        day = start.date().isoformat()
        last, text = -1, ""
        for number in range(count):
            second, micros = divmod(int((number + random.random()) * _HOUR / count), 1_000_000)
            if second != last:
                text = form.second(f"{day} {start.hour:02}:{second // 60:02}:{second % 60:02}")
                last = second
            yield day, text, micros


def _hours(events: int, first_day: date, days: int) -> Iterator[tuple[datetime, int]]:
    """Yield each hour with its number of events: three times as many at 14:00 as at 2:00."""
    weights = [2 - cos((hour - 2) * pi / 12) for hour in range(24)]
    total = sum(weights) * days
    start = datetime.combine(first_day, time(), UTC)
    passed, given = 0.0, 0
    for hour in range(24 * days):
        passed += weights[hour % 24]
        until = events if hour == 24 * days - 1 else min(events, round(events * passed / total))
        yield start + timedelta(hours=hour), until - given
        given = until


class _Output:
    """A text file, compressed if its name ends in .gz: the same bytes for the same text."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("wb")
        self._binary = (
            gzip.GzipFile("", "wb", compresslevel=1, fileobj=self._raw, mtime=0)
            if path.suffix == ".gz"
            else self._raw
        )
        self._text = TextIOWrapper(self._binary, "utf-8", newline="\n")

    def __enter__(self) -> _Output:
        return self

    def write(self, text: str) -> None:
        self._text.write(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._text.close()
        self._raw.close()
