"""What is compared of two answers: all but their order where it has no meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.conformance.cases import SCENARIOS, Scenario, Step
from tests.conformance.player import ANONYMOUS, FENCE, STRANGER, Answer, Player
from tests.conformance.requests import (
    CREATE_ACLS,
    DELETE_ACLS,
    Request,
    delete,
    matching,
)

INHERENT = {
    "cluster_id": "drawn when the cluster was made",
    "port": "of the machine's choice",
    "supported_features": "features of Kafka's releases",
    "finalized_features": "features of Kafka's releases",
    "finalized_features_epoch": "features of Kafka's releases",
}
"""Fields that no two brokers have alike, and why. Throttle times are left out by the player."""

UNORDERED = {"resources", "acls", "matching_acls", "topics"}
"""Arrays in whose order Kafka's hash tables show, or nothing."""

WRITES = {CREATE_ACLS, DELETE_ACLS}


class Moment(NamedTuple):
    """Where a request stands among all."""

    scenario: str
    version: int
    """The scenario's, which a step may override."""
    step: int


Record = dict[Moment, Answer]
"""What one broker answered."""


class Exchange(NamedTuple):
    """One request and what both brokers answered."""

    moment: Moment
    request: Request
    version: int
    kafka: Answer
    ours: Answer


def version_of(step: Step, version: int) -> int:
    """Return the version of a step in a scenario that is played at ``version``."""
    return version if step.version is None else step.version


def versions_of(scenario: Scenario, every_case: bool) -> tuple[int, ...]:
    """Return the versions of a scenario: all, or the lowest and the highest."""
    versions = scenario.versions
    return versions if every_case else tuple(dict.fromkeys((versions[0], versions[-1])))


def moments(every_case: bool) -> Iterator[tuple[Moment, Step]]:
    """Yield all requests in the order in which they are sent."""
    for scenario in SCENARIOS:
        for version in versions_of(scenario, every_case):
            for number, step in enumerate(scenario.steps):
                yield Moment(scenario.name, version, number), step


def play(player: Player, every_case: bool, *, settling: bool) -> Record:
    """Send all requests to a broker; ``settling`` if it shows what was written with a delay."""
    record: Record = {}
    for scenario in SCENARIOS:
        for version in versions_of(scenario, every_case):
            player.ask(ANONYMOUS, delete(matching()), 2)
            player.forget(STRANGER)
            record |= _play_scenario(player, scenario, version, settling=settling)
    player.ask(ANONYMOUS, delete(matching()), 2)
    return record


def _play_scenario(player: Player, scenario: Scenario, version: int, *, settling: bool) -> Record:
    record = {}
    unsettled = settling
    for number, step in enumerate(scenario.steps):
        # A super user's writes are decided and answered where all ACLs are known at once.
        if unsettled and (step.user != "admin" or step.request.key not in WRITES):
            player.settle()
            unsettled = False
        answer = player.ask(step.user, step.request, version_of(step, version))
        record[Moment(scenario.name, version, number)] = normalised(answer)
        unsettled |= settling and step.request.key in WRITES
    return record


def normalised(answer: Any) -> Any:
    """Return an answer without fences and `INHERENT` fields, in order."""
    if isinstance(answer, dict):
        kept = {name: value for name, value in answer.items() if name not in INHERENT}
        return {
            name: _ordered(normalised(value)) if name in UNORDERED else normalised(value)
            for name, value in kept.items()
        }
    if isinstance(answer, list):
        return [normalised(entry) for entry in answer if not _left_out(entry)]
    return answer


def _ordered(entries: list[Any]) -> list[Any]:
    return sorted(entries, key=repr)


def _left_out(entry: Any) -> bool:
    """Say whether an entry is a fence, or a topic that other tests made Kafka keep for itself."""
    if not isinstance(entry, dict):
        return False
    is_kept = str(entry.get("name")).startswith("__") and not entry["error_code"]
    return is_kept or str(entry.get("resource_name")).startswith(FENCE)
