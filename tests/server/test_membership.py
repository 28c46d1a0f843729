"""The watch over a groups file, looking more often than a broker does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.server import membership
from aclbroker.broker.server.file_stamp import FileStamp, file_stamp
from aclbroker.broker.server.membership import Membership

GROUPS = "version: 1\ngroups: {staff: [User:alice]}\n"


async def nobody_changed() -> int:
    return 0


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[FileStamp]:
    """What was seen at each look."""
    found: list[FileStamp] = []

    def noted(path: str) -> FileStamp:
        found.append(file_stamp(path))
        return found[-1]

    monkeypatch.setattr(membership, "_LOOK_EVERY_SECONDS", 0.001)
    monkeypatch.setattr(membership, "file_stamp", noted)
    return found


async def after_looks(looks: list[FileStamp], number: int = 20) -> None:
    for _ in range(100_000):
        if len(looks) >= number:
            return
        await asyncio.sleep(0.001)
    pytest.fail("nobody looks at the file")


@pytest.mark.parametrize("text", ["version: 1\n", None])
async def test_a_file_that_stays_unusable_is_told_once_and_the_next_good_one_is_taken(
    tmp_path: Path, looks: list[FileStamp], text: str | None
) -> None:
    path = tmp_path / "groups.yaml"
    path.write_text(GROUPS)
    members = Membership(str(path))
    watch = asyncio.create_task(members.watch(nobody_changed))
    with capture_logs() as lines:
        if text is None:
            path.unlink()
        else:
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").rename(path)
        await after_looks(looks)
        assert [each["event"] for each in lines] == ["groups not reloaded; the old ones stay"]
        assert members.groups().of("User:alice") == ("Group:staff",)
        (tmp_path / "new").write_text(GROUPS.replace("alice", "bob"))
        (tmp_path / "new").rename(path)
        await after_looks(looks, len(looks) + 20)
        assert [each["event"] for each in lines[1:]] == ["groups reloaded"]
        assert members.groups().of("User:alice") == ()
        assert members.groups().of("User:bob") == ("Group:staff",)
    watch.cancel()


async def test_without_a_file_there_is_nothing_to_watch(looks: list[FileStamp]) -> None:
    members = Membership(None)
    await members.watch(nobody_changed)
    assert looks == []
    assert len(members.groups()) == 0
