"""Recordings: all that a broker answered to the suite, kept in a file of gzipped JSON.

The file holds each different outline once, and for each case, version and role the number of its
outline. Format 2::

    {"format": 2, "broker": "Apache Kafka 4.3.0", "suite": "authorization",
     "offered": {"PRODUCE": [0, 13], ...},
     "outlines": [["answered", {path: code}, {path: operations}, {path: [name, ...]},
                   {path: field}, {path: [name told, ...]}, [code, ...]], ...],
     "answers": {"PRODUCE": {"to each topic": {"12": {"none": 3, ...}, ...}, ...}, ...}}
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from aclbroker.conformance.outline import Outline
from aclbroker.protocol.messages import ApiKey

FORMAT: Final = 2
AUTHORIZATION: Final = "authorization"
BEHAVIOUR: Final = "behaviour"
PACKAGED: Final = {
    AUTHORIZATION: "kafka-4.3.0.json.gz",
    BEHAVIOUR: "kafka-4.3.0-behaviour.json.gz",
}
"""The file names of the packaged recordings by suite, made with a real Kafka 4.3.0."""


class RecordingError(Exception):
    """The file is not a recording, or has another format."""


class Step(NamedTuple):
    """A case, sent at one version in one role."""

    key: ApiKey
    label: str
    version: int
    role: str


class Recording(NamedTuple):
    """The answers of one broker to the suite."""

    broker: str
    """The name of the broker, for people to read."""
    offered: dict[ApiKey, range]
    """The versions of each key that the broker advertises."""
    answers: dict[Step, Outline]
    suite: str = AUTHORIZATION
    """What was played: the cases of `corpus`, or the stories of `behaviour`."""

    def of(self, keys: Collection[ApiKey]) -> Recording:
        """Return what is recorded of these keys."""
        answers = {step: answer for step, answer in self.answers.items() if step.key in keys}
        return self._replace(answers=answers)


def packaged_recording(suite: str = AUTHORIZATION) -> Recording:
    """Return the recording of a real Kafka 4.3.0 that comes with the program."""
    file = resources.files(__package__).joinpath("recordings", PACKAGED[suite])
    return loads(file.read_bytes())


def load(path: Path) -> Recording:
    """Read a recording from a file; raises `OSError` and `RecordingError`."""
    return loads(path.read_bytes())


def dumps(recording: Recording) -> bytes:
    """Return the bytes of a recording's file; equal recordings have equal bytes."""
    numbers: dict[str, int] = {}
    answers: dict[str, Any] = {}
    for step, outline in recording.answers.items():
        text = json.dumps(outline, sort_keys=True, separators=(",", ":"))
        number = numbers.setdefault(text, len(numbers))
        versions = answers.setdefault(step.key.name, {}).setdefault(step.label, {})
        versions.setdefault(str(step.version), {})[step.role] = number
    document = {
        "format": FORMAT,
        "broker": recording.broker,
        "suite": recording.suite,
        "offered": {
            key.name: [versions[0], versions[-1]] for key, versions in recording.offered.items()
        },
        "outlines": [json.loads(text) for text in numbers],
        "answers": answers,
    }
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def loads(data: bytes) -> Recording:
    """Return the recording that the bytes of a file hold; raises `RecordingError`."""
    try:
        document = json.loads(gzip.decompress(data))
        if document["format"] != FORMAT:
            raise RecordingError(f"a recording of format {document['format']}, not {FORMAT}")
        offered = {
            ApiKey[name]: range(first, last + 1)
            for name, (first, last) in document["offered"].items()
        }
        suite = document.get("suite", AUTHORIZATION)
        return Recording(document["broker"], offered, dict(_answers(document)), suite)
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise RecordingError(f"not a recording: {error!r}") from error


def _answers(document: dict[str, Any]) -> Iterator[tuple[Step, Outline]]:
    outlines = [Outline(*fields) for fields in document["outlines"]]
    for key, labels in document["answers"].items():
        for label, versions in labels.items():
            for version, roles in versions.items():
                for role, number in roles.items():
                    yield Step(ApiKey[key], label, int(version), role), outlines[number]
