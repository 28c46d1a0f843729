"""What a case is: requests that are sent in order."""

from __future__ import annotations

from typing import NamedTuple

from tests.conformance.requests import Request


class Step(NamedTuple):
    """One request and who sends it."""

    user: str
    request: Request
    version: int | None = None
    """The version, or None for the scenario's."""


class Scenario(NamedTuple):
    """Requests that are sent in this order, to a broker without ACLs."""

    name: str
    steps: tuple[Step, ...]
    versions: tuple[int, ...] = (1, 2, 3)
    """All of it is played at each of these."""


def as_admin(*requests: Request) -> tuple[Step, ...]:
    """Return steps of the super user."""
    return tuple(Step("admin", request) for request in requests)


def as_alice(*requests: Request) -> tuple[Step, ...]:
    """Return steps of a user without any right but those that the scenario gives her."""
    return tuple(Step("alice", request) for request in requests)
