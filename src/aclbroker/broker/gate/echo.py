"""How an answer repeats its request: which array echoes which, and where the error code goes.

One declaration is used to refuse a whole request, to refuse single entries, and to put refused
entries back among the answered ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from aclbroker.turns import in_turns


class Denial(NamedTuple):
    """The error code and the message of a refusal."""

    code: int
    message: str


@dataclass(frozen=True)
class Echo:
    """An array of the answer with an entry for each entry of an array of the request.

    ``keys`` pairs fields of the answer's entry with fields of the request's; "" means that the
    request's entry is a bare value. With an ``inner`` echo only the innermost entries get the code,
    if they have a field for it. ``fill`` has the values of other fields in a refusal, if these
    differ from their defaults.
    """

    answer: str
    asked: str
    keys: tuple[tuple[str, str], ...]
    inner: Echo | None = None
    fill: Mapping[str, Any] = field(default_factory=dict)

    def refuse(self, owner: Any, entry: Any, denial: Denial) -> Any:
        """Return the answer's entry that refuses one entry of the request.

        ``owner`` is the class that the array is a field of.
        """
        struct, code_field, has_message = _entry_class(owner, self.answer)
        values: dict[str, Any] = {
            answer: getattr(entry, asked) if asked else entry for answer, asked in self.keys
        }
        inner = self.inner
        if inner is not None:
            entries = getattr(entry, inner.asked) or ()
            values[inner.answer] = [
                inner.refuse(struct, each, denial) for each in in_turns(entries)
            ]
        elif code_field:
            values[code_field] = denial.code
            if has_message:
                values["error_message"] = denial.message
        return struct(**values, **self.fill)

    def has_codes(self, owner: Any) -> bool:
        """Tell whether a refused entry has its code; ``owner`` as in `refuse`."""
        struct, code_field, _ = _entry_class(owner, self.answer)
        return bool(code_field) if self.inner is None else self.inner.has_codes(struct)

    def key_of(self, entry: Any) -> tuple[Any, ...]:
        """Return the values that identify an entry of the request."""
        return tuple(getattr(entry, name) if name else entry for _, name in self.keys)

    def merged(
        self, asked: Collection[Any], refused: Mapping[int, Any], answered: Collection[Any]
    ) -> list[Any]:
        """Return one list in the order of the request.

        ``refused`` has a refusing entry for each position of the request that is refused. The other
        positions get the entries of ``answered`` with the same keys. An answered entry that the
        request does not have is left out.
        """
        # The last come first, so that the first can be popped; a deque would take 600 bytes.
        found: dict[tuple[Any, ...], list[Any]] = {}
        for entry in in_turns(list(answered)[::-1]):
            key = tuple(getattr(entry, answer) for answer, _ in self.keys)
            found.setdefault(key, []).append(entry)
        merged = []
        for position, entry in enumerate(in_turns(asked)):
            if position in refused:
                merged.append(refused[position])
            elif left := found.get(self.key_of(entry)):
                merged.append(left.pop())
        return merged


@dataclass(frozen=True)
class Form:
    """How an answer is made from a request: a code at the ``top``, an ``echo``, or both.

    With ``top_decides`` an answer with an error code at the top has no entries. The refusal of a
    whole request then leaves them out, and a request is passed on even if all its entries are
    refused, since the code at the top may still refuse it. ``made`` is a function that makes the
    refusal of a whole request where a declaration cannot.
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
                self.echo.refuse(response, entry, denial) for entry in in_turns(entries)
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
    """Declare an echo.

    ``keys`` lists the key fields, as in ``name index``. ``partition=index`` is a field whose name
    differs in the request, and ``group_id=`` one whose value is the bare entry of the request.
    """
    pairs = []
    for key in keys.split():
        name, equals, source = key.partition("=")
        pairs.append((name, source if equals else name))
    return Echo(answer, asked, tuple(pairs), inner, fill)


def entries(echoed: Echo, **fill: Any) -> Form:
    """Declare an answer whose entries have the codes, also if the whole request is refused."""
    return Form(False, echoed, fill)


def top_and_entries(echoed: Echo, **fill: Any) -> Form:
    """Declare an answer in which a refused request has its code at the top and in each entry."""
    return Form(True, echoed, fill)


def top_or_entries(echoed: Echo, **fill: Any) -> Form:
    """Declare an answer in which a refused request has its code at the top, and no entries."""
    return Form(True, echoed, fill, top_decides=True)


def made(refuse: Callable[[Any, Denial], Any]) -> Form:
    """Declare an answer whose refusal is made by a function of the request and the denial."""
    return Form(made=refuse)


def without(request: Any, array: str, positions: Collection[int]) -> Any:
    """Return a request without the entries of an array at some positions."""
    entries = getattr(request, array)
    kept = [entry for position, entry in enumerate(in_turns(entries)) if position not in positions]
    return dataclasses.replace(request, **{array: kept})


@cache
def _names(cls: Any) -> frozenset[str]:
    return frozenset(f.name for f in dataclasses.fields(cls))


@cache
def _entry_class(owner: Any, array: str) -> tuple[Callable[..., Any], str, bool]:
    """Return the class of an array's entries, its error code field, and whether it has a message.

    The error code field is "" if entries have none.
    """
    [declared] = [f for f in dataclasses.fields(owner) if f.name == array]
    [struct] = declared.metadata["spec"].kind
    names = _names(struct)
    codes = sorted(name for name in names if name.endswith("error_code"))
    code_field = "error_code" if "error_code" in names else next(iter(codes), "")
    return struct, code_field, "error_message" in names
