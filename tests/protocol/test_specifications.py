"""The declarations are those of Kafka's own message specifications, read again from its jars."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol import messages
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.protocol.schema import FieldSpec, versions_in
from tests.support.messages import MESSAGES
from tests.support.packages import kafka_clients_jars
from tests.support.tables import check_each
from tools.generate_messages import NEWER, OLDER, python_name, specifications, write

ROOT = Path(__file__).parents[2]
GENERATED = Path(messages.__file__).parent
WRITTEN_BY_HAND = {"__init__.py", "api.py"}

Specification = dict[str, Any]

EMPTY = {"bool": False, "bytes": b"", "string": "", "uuid": ZERO_UUID, "float64": 0.0}
"""The defaults of the types whose default is not 0."""


def jar(version: str) -> Path:
    """The kafka-clients jar of a release."""
    return kafka_clients_jars(version) / f"kafka-clients-{version}.jar"


@pytest.fixture(scope="module")
def releases() -> dict[str, dict[str, Specification]]:
    return {version: specifications(jar(version)) for version in (OLDER, NEWER)}


@pytest.mark.thorough
def test_messages_are_what_the_generator_writes(tmp_path: Path) -> None:
    output = tmp_path / "src" / "aclbroker" / "protocol" / "messages"
    output.mkdir(parents=True)
    # Ruff finds its settings there, and what is ignored in this folder.
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    write(jar(OLDER), jar(NEWER), output)
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix"], ["format"]):
        subprocess.run([*ruff, *command, "--quiet", "--no-cache", output], cwd=tmp_path, check=True)

    written = {path.name: path.read_text() for path in output.iterdir()}

    present = {path.name: path.read_text() for path in GENERATED.glob("*.py")}
    assert present.keys() - written.keys() == WRITTEN_BY_HAND
    for name, text in written.items():
        assert present.get(name) == text, f"{name} is out of date: run `make messages`"


def test_fields_are_those_of_the_specification(
    releases: dict[str, dict[str, Specification]],
) -> None:
    def check(cls: Any) -> None:
        newer, older = (releases[version].get(cls.__name__) for version in (NEWER, OLDER))
        declared = versions[cls]
        in_newer = of(declared, versions_in(newer["validVersions"])) if newer else set()

        for specification, present in ((newer, in_newer), (older, declared - in_newer)):
            if specification and present:
                for name, of_kafka, ours in compared(specification, cls, present):
                    assert of_kafka == ours, name

    versions: defaultdict[Any, set[int]] = defaultdict(set)
    for message in MESSAGES:
        versions[message.cls].add(message.version)
    check_each(versions, check)


def of(versions: set[int], among: range) -> set[int]:
    """The versions that are in a range, whose end may be far away."""
    return {version for version in versions if version in among}


def compared(
    specification: Specification, cls: Any, versions: set[int]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each property of a message: its name, what Kafka has and what is declared."""
    flexible = of(versions, versions_in(specification["flexibleVersions"]))
    yield "flexible", flexible, of(versions, cls.FLEXIBLE)
    common = {struct["name"]: struct for struct in specification.get("commonStructs", ())}
    yield from compared_fields(specification["fields"], cls, versions, common)


def compared_fields(
    fields: list[Specification], cls: Any, versions: set[int], common: dict[str, Specification]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the properties of a struct's fields, and of the structs inside them."""

    def present(text: str) -> set[int]:
        return of(versions, versions_in(text))

    declared = {field.name: field for field in dataclasses.fields(cls)}
    fields = [field for field in fields if present(field["versions"])]
    specs = {name: field.metadata["spec"] for name, field in declared.items() if field.metadata}
    ours = [name for name, spec in specs.items() if of(versions, spec.versions)]
    yield cls.__name__, [python_name(field["name"]) for field in fields], ours
    for field in fields:
        name = python_name(field["name"])
        spec: FieldSpec = specs[name]
        where = f"{cls.__name__}.{name}"
        yield f"{where} versions", present(field["versions"]), of(versions, spec.versions)
        nullable = present(field.get("nullableVersions", "none")) & present(field["versions"])
        yield f"{where} nullable", nullable, of(versions, spec.nullable)
        tagged = present(field.get("taggedVersions", "none"))
        yield f"{where} tagged", tagged, of(versions, spec.tagged)
        yield f"{where} tag", field.get("tag"), spec.tag
        kind = spec.kind[0] if isinstance(spec.kind, list) else spec.kind
        yield f"{where} array", field["type"].startswith("[]"), isinstance(spec.kind, list)
        inner = field["type"].removeprefix("[]")
        if isinstance(kind, type):
            entries = field.get("fields") or common[inner]["fields"]
            yield from compared_fields(entries, kind, present(field["versions"]), common)
        else:
            yield f"{where} type", inner, kind
        if isinstance(spec.kind, str):
            yield f"{where} default", default_of(field, nullable), declared[name].default


def default_of(field: Specification, nullable: set[int]) -> Any:
    """Return the default of a field that is neither an array nor a struct."""
    text, kind = field.get("default"), field["type"]
    if kind == "records":
        # Kafka's is null also where null cannot be written.
        return None if nullable else b""
    if text == "null":
        return None
    if text in (None, ""):
        return EMPTY.get(kind, 0)
    if kind == "bool":
        return str(text).lower() == "true"
    if kind in ("string", "float64"):
        return text if kind == "string" else float(text)
    return int(str(text), 0)
