"""A broker for each test, started as a user starts it, with the settings that the test asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.broker import Broker

StartBroker = Callable[..., Broker]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Start a broker with overrides; it is ended with the test."""
    started: list[Broker] = []

    def start(overrides: dict[str, str] | None = None) -> Broker:
        directory = tmp_path / f"broker-{len(started)}"
        directory.mkdir()
        broker = Broker(directory, overrides)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        if broker.process is not None and broker.process.poll() is None:
            broker.kill()
