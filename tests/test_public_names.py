"""The public interface: what `aclbroker` exports, and what its signatures speak of."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import aclbroker

PUBLIC = {name: getattr(aclbroker, name) for name in aclbroker.__all__}


def hints(public: Any) -> Iterator[tuple[str, Any]]:
    """Return what a public class says of its fields, properties and methods, inherited ones too."""
    yield from (item for item in get_type_hints(public).items() if not item[0].startswith("_"))
    for name, member in inspect.getmembers(public):
        function = member.fget if isinstance(member, property) else member
        is_shown = name == "__init__" or not name.startswith("_")
        if is_shown and (inspect.isfunction(function) or inspect.ismethod(function)):
            for parameter, hint in get_type_hints(function).items():
                yield f"{name}({parameter})", hint


def types_in(hint: Any) -> Iterator[type]:
    """Return the classes that an annotation names, however deep."""
    for part in (get_origin(hint), *get_args(hint)):
        yield from types_in(part) if part is not None else ()
    if isinstance(hint, list):
        for part in hint:
            yield from types_in(part)
    elif inspect.isclass(hint) and not get_args(hint):
        yield hint


def is_of_the_standard_library(found: type) -> bool:
    return found.__module__.partition(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(PUBLIC[name])])
def test_signatures_name_nothing_private(name: str) -> None:
    private = {
        where: found
        for where, hint in hints(PUBLIC[name])
        for found in types_in(hint)
        if found not in PUBLIC.values() and not is_of_the_standard_library(found)
    }
    assert private == {}


def test_what_is_public_can_be_imported_and_is_listed() -> None:
    assert sorted(PUBLIC) == aclbroker.__all__
    assert set(PUBLIC) <= set(dir(aclbroker))


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="PatternAcls"):
        aclbroker.PatternAcls  # noqa: B018 # asking is the test
