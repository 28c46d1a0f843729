"""The codec has aiokafka's types without its client, and takes nothing from who wants that."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from aclbroker.protocol import aiokafka_types

_IMPORTED = "print(sorted(name for name in sys.modules if name.startswith('aiokafka')))"


def printed(code: str) -> str:
    command = [sys.executable, "-c", f"import sys\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_codec_does_not_import_a_client() -> None:
    assert printed(f"import aclbroker.broker.server.run\n{_IMPORTED}") == "[]"


@pytest.mark.parametrize("first", ["aclbroker.protocol.wire", "aiokafka"])
def test_who_uses_aiokafka_has_all_of_it_whichever_comes_first(first: str) -> None:
    code = (
        f"import {first}, aiokafka, aiokafka.admin, aclbroker.protocol.wire\n"
        "from aiokafka.protocol.types import Int8\n"
        "from aclbroker.protocol.aiokafka_types import Int8 as Ours\n"
        "print(aiokafka.AIOKafkaProducer.__name__, Int8.encode(7) == Ours.encode(7))"
    )
    assert printed(code) == "AIOKafkaProducer True"


@pytest.fixture
def not_imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if nobody had imported aiokafka."""
    found = {name: sys.modules.pop(name) for name in [*sys.modules] if name[:8] == "aiokafka"}
    yield
    for name in [name for name in sys.modules if name[:8] == "aiokafka"]:
        del sys.modules[name]
    sys.modules.update(found)


@pytest.mark.usefixtures("not_imported")
def test_while_other_threads_run_it_is_imported_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    alone = aiokafka_types._types()
    assert "aiokafka" not in sys.modules
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    beside_others = aiokafka_types._types()
    assert "aiokafka.client" in sys.modules
    assert alone.Int8.encode(7) == beside_others.Int8.encode(7)


@pytest.mark.usefixtures("not_imported")
def test_without_aiokafka_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(aiokafka_types, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="aiokafka is not installed"):
        aiokafka_types._types()
    assert importlib.util.find_spec("aiokafka") is not None
