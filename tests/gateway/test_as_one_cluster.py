"""A gateway before a cluster without ACLs answers as a cluster that has the same ACLs itself.

Both clusters are in memory, so this test needs no JVM. `tests.gateway.twins` sends both the same
requests, and names all that may differ.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.gateway.twins.answers import BY_DESIGN
from tests.gateway.twins.records import Story
from tests.gateway.twins.sides import Twins, twins
from tests.gateway.twins.state import compare_state
from tests.gateway.twins.stories import STORIES
from tests.gateway.twins.world import VERSIONS, World
from tests.support.tables import examples

STEPS = 60
"""The steps of one run, each of which has one request or a few."""

AT_ONCE = 3
"""The number of stories that go on at the same time."""


def run(twins: Twins, seed: int, steps: int) -> None:
    """Send requests, change ACLs and inject faults in a random order; then compare all data."""
    random = Random(seed)
    world = World(twins, random)
    stories: list[Story] = []
    for _ in range(steps):
        chance = random.random()
        if chance < 0.08:
            world.rights.change()
        elif chance < 0.12:
            world.fail()
        elif chance < 0.42:
            world.draw()
        elif chance < 0.5:
            world.pipeline()
        else:
            step(world, stories)
    compare_state(twins)


def step(world: World, stories: list[Story]) -> None:
    """Let one of the stories go on."""
    if len(stories) < AT_ONCE:
        stories.append(world.random.choice(STORIES)(world))
    story = world.random.choice(stories)
    if next(story, ...) is ...:
        stories.remove(story)


def check(directory: Path, seed: int, steps: int) -> Twins:
    """Demand that the sides do not differ in one run."""
    with twins(directory / str(seed), auto_creates=seed % 4 > 0) as both:
        try:
            run(both, seed, steps)
        except BaseException as error:
            error.add_note(f"seed {seed}, step {both.number}")
            raise
    assert not both.differing, "\n".join([f"seed {seed}", *map(str, both.differing[:5])])
    return both


def test_a_gateway_answers_as_a_cluster_with_the_same_acls(tmp_path: Path):
    for seed in range(examples(50)):
        check(tmp_path, seed, STEPS)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_every_version_is_answered_alike_but_for_what_is_declared(tmp_path: Path):
    sent: Counter[tuple[int, int]] = Counter()
    declared: Counter[str] = Counter()
    for seed in range(1_000, 1_100):
        both = check(tmp_path, seed, 3 * STEPS)
        sent += both.sent
        declared += both.renames.by_design
    assert set(sent) >= set(VERSIONS)
    assert {rule.reason for rule in BY_DESIGN} == set(declared)
