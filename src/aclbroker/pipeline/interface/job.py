"""How a job is declared: its name, its options, what it needs, and the function that answers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import JobResult

Options = TypeVar("Options")


class Option(NamedTuple):
    """An option of the command line that sets a field of a job's options.

    ``field`` is the field's name; in ``spike.minimum`` it is the field ``minimum`` of the field
    ``spike``. ``read`` turns the text of the command line into a value, and the help calls that
    text ``shown``. Without ``read`` the option takes no text, and the value is ``flag``. With
    ``many`` it may be given several times. Then ``read`` returns a list, and the value is all lists
    joined.
    """

    name: str
    field: str
    does: str
    read: Callable[[str], Any] | None = None
    shown: str = ""
    flag: bool = True
    many: bool = False


@dataclass(frozen=True, slots=True)
class Job(Generic[Options]):
    """A question about a log, and the function that answers it.

    ``name`` and ``does`` are what the command line calls it and says of it. ``options`` is a
    dataclass whose fields all have defaults, and ``arguments`` are those of them that the command
    line offers. ``run`` raises InputError if it cannot answer. ``needs`` are the options for sets
    of ACLs, such as ``acls``, without which it cannot. ``looks_back`` tells that it uses
    `Inputs.earlier`. ``former_name`` is still accepted on the command line.
    """

    name: str
    does: str
    options: type[Options]
    run: Callable[[Inputs, Options], JobResult]
    arguments: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ()
    looks_back: bool = False
    former_name: str = ""

    def answer(self, inputs: Inputs, fields: Mapping[str, Any]) -> JobResult:
        """Run the job; ``fields`` are those of its options that are not to have their default."""
        return self.run(inputs, self.options_with(fields))

    def options_with(self, fields: Mapping[str, Any]) -> Options:
        """Return the options with some fields set, which are named as in `Option.field`."""
        found: Any = self.options()
        for name, value in fields.items():
            outer, _, inner = name.partition(".")
            if inner:
                value = replace(getattr(found, outer), **{inner: value})
            found = replace(found, **{outer: value})
        options: Options = found
        return options


def whole(text: str) -> int:
    """Return the whole number above 0 that a text says; the error is one that argparse shows."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def zero_or_more(text: str) -> int:
    """Return the whole number that a text says, which may be 0; the error is as of `whole`."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def positive(text: str) -> float:
    """Return the number above 0 that a text says; the error is one that argparse shows."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def percent(text: str) -> float:
    """Return the number from 0 to 100 that a text says; the error is one that argparse shows."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 100")
    return number


MAX_DRIFT: Final = Option(
    "max-drift",
    "max_drift",
    "leave out a cluster if more of 100 events were decided otherwise than its ACLs decide "
    "(default: 1)",
    percent,
    "PERCENT",
)
"""The option of jobs that propose nothing for a cluster whose log contradicts its ACLs."""

MIN_COVERAGE: Final = Option(
    "min-coverage",
    "min_coverage",
    "how many of 100 hours that the brokers of a cluster logged must have allowed events, for its "
    "use to count as known (default: 100)",
    percent,
    "PERCENT",
)
"""The option of jobs that take a right without allowed events for unused."""

MAX_QUARANTINED: Final = Option(
    "max-quarantined",
    "max_quarantined",
    "leave out a cluster, and end with status 1, if more of 100 lines of its log are in quarantine "
    "(default: 10)",
    percent,
    "PERCENT",
)
"""The option of jobs that propose nothing for a cluster with too many quarantined lines."""

TOP: Final = Option(
    "top", "top", "how many rows the tables of the report have (default: 20)", whole, "N"
)
"""The option of jobs whose options have a field ``top``."""
