"""How an answer repeats its request: which array echoes which, and where the error code goes.

One declaration serves refusals of the whole request, refusals of single entries, and putting
refused entries back among the answered ones.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple


class Denial(NamedTuple):
    """An error code and its message, in place of an answer."""

    code: int
    message: str


@dataclass(frozen=True)
class Echo:
    """An array of the answer with an entry for each entry of an array of the request.

    ``keys`` pairs fields of the answer's entry with fields of the request's; "" stands for an entry
    that is a bare value. With an ``inner`` echo the code goes to the innermost entries, if these
    have codes. ``fill`` has what other fields are in a refusal, where that is not their default.
    """

    answer: str
    asked: str
    keys: tuple[tuple[str, str], ...]
    inner: Echo | None = None
    fill: Mapping[str, Any] = field(default_factory=dict)

    def refuse(self, owner: Any, entry: Any, denial: Denial) -> Any:
        """Return the answer's entry that refuses one entry of the request.

        ``owner`` is the class that has the array in the answer.
        """
        struct, code_field, has_message = _entry_class(owner, self.answer)
        values: dict[str, Any] = {
            answer: getattr(entry, asked) if asked else entry for answer, asked in self.keys
        }
        inner = self.inner
        if inner is not None:
            entries = getattr(entry, inner.asked) or ()
            values[inner.answer] = [inner.refuse(struct, each, denial) for each in entries]
        elif code_field:
            values[code_field] = denial.code
            if has_message:
                values["error_message"] = denial.message
        return struct(**values, **self.fill)

    def key_of(self, entry: Any) -> tuple[Any, ...]:
        """Return what tells an entry of the request from others."""
        return tuple(getattr(entry, name) if name else entry for _, name in self.keys)

    def merged(
        self, asked: Iterable[Any], refused: Mapping[int, Any], answered: Iterable[Any]
    ) -> list[Any]:
        """Return one list in the order of the request.

        ``refused`` has the refusing entries by the position of what they refuse; ``answered`` has
        the rest, found by its keys. What is answered without having been asked is left out.
        """
        found: dict[tuple[Any, ...], deque[Any]] = defaultdict(deque)
        for entry in answered:
            found[tuple(getattr(entry, answer) for answer, _ in self.keys)].append(entry)
        merged = []
        for position, entry in enumerate(asked):
            if position in refused:
                merged.append(refused[position])
                continue
            if found[key := self.key_of(entry)]:
                merged.append(found[key].popleft())
        return merged


@dataclass(frozen=True)
class Form:
    """How an answer is made of a request: a code at the ``top``, an ``echo``, or both.

    With ``top_decides`` an answer with a code at the top has no entries: a refusal of the whole
    request leaves them out, and the request goes on even if every entry of it is refused. ``made``
    is a function that makes the refusal of a whole request, where no declaration can.
    """

    top: bool = False
    echo: Echo | None = None
    fill: Mapping[str, Any] = field(default_factory=dict)
    top_decides: bool = False
    made: Callable[[Any, Denial], Any] | None = None

    def refuse(self, response: Any, request: Any, denial: Denial) -> Any:
        """Return the response (of class ``response``) that refuses the whole request."""
        if self.made is not None:
            return self.made(request, denial)
        values: dict[str, Any] = dict(self.fill)
        if self.top:
            values["error_code"] = denial.code
            if "error_message" in _names(response):
                values["error_message"] = denial.message
        if self.echo is not None and not self.top_decides:
            entries = getattr(request, self.echo.asked) or ()
            values[self.echo.answer] = [
                self.echo.refuse(response, entry, denial) for entry in entries
            ]
        return response(**values)


TOP = Form(top=True)


def echo(
    answer: str,
    asked: str,
    keys: str,
    inner: Echo | None = None,
    **fill: Any,
) -> Echo:
    """Declare an echo; ``keys`` are names such as ``name index``, or ``partition=index``.

    ``group_id=`` makes a field of entries that are bare values.
    """
    pairs = []
    for key in keys.split():
        name, equals, source = key.partition("=")
        pairs.append((name, source if equals else name))
    return Echo(answer, asked, tuple(pairs), inner, fill)


def entries(echoed: Echo, **fill: Any) -> Form:
    """Declare an answer that is refused entry by entry, the whole as well as parts."""
    return Form(False, echoed, fill)


def top_and_entries(echoed: Echo, **fill: Any) -> Form:
    """Declare an answer that is refused as a whole at the top and in each entry."""
    return Form(True, echoed, fill)


def top_or_entries(echoed: Echo, **fill: Any) -> Form:
    """Declare an answer that is refused as a whole at the top alone, in parts entry by entry."""
    return Form(True, echoed, fill, top_decides=True)


def made(refuse: Callable[[Any, Denial], Any]) -> Form:
    """Declare an answer whose refusal a function makes of the request and the denial."""
    return Form(made=refuse)


def without(request: Any, array: str, positions: Collection[int]) -> Any:
    """Return a request without some entries of an array."""
    entries = getattr(request, array)
    kept = [entry for position, entry in enumerate(entries) if position not in positions]
    return dataclasses.replace(request, **{array: kept})


@cache
def _names(cls: Any) -> frozenset[str]:
    return frozenset(f.name for f in dataclasses.fields(cls))


@cache
def _entry_class(owner: Any, array: str) -> tuple[Callable[..., Any], str, bool]:
    """Return the class of an array's entries, its field for the code, and if it has a message.

    The field is "" where entries have no code.
    """
    [declared] = [f for f in dataclasses.fields(owner) if f.name == array]
    [struct] = declared.metadata["spec"].kind
    names = _names(struct)
    codes = sorted(name for name in names if name.endswith("error_code"))
    code_field = "error_code" if "error_code" in names else next(iter(codes), "")
    return struct, code_field, "error_message" in names
