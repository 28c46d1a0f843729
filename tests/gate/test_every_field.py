"""Every field of every answer is declared in `broker.gate.shown`, or known to tell of nothing.

A version of Kafka that adds a field fails here until somebody has said who may see it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from aclbroker.broker.gate.disclosure import Echoed
from aclbroker.broker.gate.harmless import EVERYWHERE, HARMLESS
from aclbroker.broker.gate.shown import SHOWN
from aclbroker.protocol.messages import APIS, Api
from aclbroker.protocol.schema import FieldSpec
from tests.support.messages import EXCHANGES, Exchange
from tests.support.tables import check_each

UNDECLARED = "say in gate/shown.py who may see it, or in gate/harmless.py why all may"

# Texts, bytes and ids can tell of anything. Of numbers only these are looked at.
TELLING = {"string", "bytes", "records", "uuid"}
NAMES = re.compile(
    r"topic|group|transactional|host|port|address|endpoint|operations|hmac|salt|key|password|secret"
    r"|token|credential|config|value|user|principal|^node|broker_id|nodes$"
)


def fields(cls: Any, version: int, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the kind of each field that a version of a message has."""
    for field in dataclasses.fields(cls):
        spec: FieldSpec | None = field.metadata.get("spec")
        if spec is None or version not in spec.versions:
            continue
        kind = spec.kind[0] if isinstance(spec.kind, list) else spec.kind
        if isinstance(kind, str):
            yield prefix + field.name, kind
        else:
            yield from fields(kind, version, f"{prefix}{field.name}.")


def telling(key: int, version: int) -> set[str]:
    """Return the fields of a version's answer that might tell of something."""
    return {
        path
        for path, kind in fields(APIS[key].response, version)
        if kind in TELLING
        or (NAMES.search(name := path.rpartition(".")[2]) and not name.endswith("error_code"))
    }


def declared(key: int) -> set[str]:
    """Return the fields that are declared of a key's answers."""
    return {path for line in SHOWN[key] for path in line.fields}


def has(paths: set[str], path: str) -> bool:
    """Tell whether a path, or all that stands under it, is among some."""
    return path in paths or any(each.startswith(f"{path}.") for each in paths)


def every_field(cls: Any, api: Any) -> set[str]:
    """Return the fields that a message has in any version."""
    return {path for version in api.versions for path, _ in fields(cls, version)}


def is_declared(paths: set[str], path: str) -> bool:
    """Tell whether a field is declared, or is part of what is declared to become blank."""
    return path in paths or any(path.startswith(f"{each}.") for each in paths)


def test_every_key_is_declared() -> None:
    assert set(SHOWN) == set(APIS)


def test_each_field_that_might_tell_of_something_is_declared_or_harmless() -> None:
    def check(exchange: Exchange) -> None:
        key, version = exchange
        paths = declared(key)
        unknown = {
            path
            for path in telling(key, version)
            if not is_declared(paths, path)
            and f"{APIS[key].name} {path}" not in HARMLESS
            and path.rpartition(".")[2] not in EVERYWHERE
        }
        assert not unknown, (
            "say in gate/shown.py who may see it, or in gate/harmless.py why all may"
        )

    check_each(EXCHANGES, check)


def test_what_is_declared_is_there() -> None:
    def check(api: Api) -> None:
        answered = every_field(api.response, api)
        assert not {path for path in declared(api.key) if not has(answered, path)}
        asked = every_field(api.request, api)
        echoed = [line for line in SHOWN[api.key] if isinstance(line, Echoed)]
        assert not {path for line in echoed for path in line.asked_fields if not has(asked, path)}

    check_each(APIS.values(), check)


def test_what_must_have_been_asked_for_can_be_asked_for() -> None:
    def check(exchange: Exchange) -> None:
        key, version = exchange
        answered = {path for path, _ in fields(APIS[key].response, version)}
        asked = {path for path, _ in fields(APIS[key].request, version)}
        for line in SHOWN[key]:
            if isinstance(line, Echoed) and not answered.isdisjoint(line.fields):
                assert not asked.isdisjoint(line.asked_fields)

    check_each(EXCHANGES, check)


def test_nothing_is_called_harmless_in_vain() -> None:
    found = {
        (APIS[key].name, path)
        for key, api in APIS.items()
        for version in api.versions
        for path in telling(key, version)
        if not is_declared(declared(key), path)
    }
    paths = {f"{name} {path}" for name, path in found}
    assert set(HARMLESS) <= paths
    rest = {path.rpartition(".")[2] for name, path in found if f"{name} {path}" not in HARMLESS}
    assert set(EVERYWHERE) == rest
    assert all(reason.endswith(".") for reason in (*EVERYWHERE.values(), *HARMLESS.values()))
