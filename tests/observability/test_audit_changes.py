"""Records of changes: in each form, at each level, and whatever the limit if they were made."""

import asyncio
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.acl.authorizer import Session
from aclbroker.broker.config import load
from aclbroker.broker.observability import logs
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.audit_changes import Change
from tests.acl.examples import READ, deny
from tests.observability.auditing import Audited, asked


def changes(count: int, error: str = "NONE") -> Iterator[Change]:
    return (Change("DELETE_ACL", {"acl": {"resource_name": f"{n}"}}, error) for n in range(count))


@pytest.mark.parametrize(("level", "number"), [("off", 0), ("denied", 1), ("all", 1), ("trace", 1)])
def test_changes_are_recorded_at_every_level_but_off(tmp_path: Path, level: str, number: int):
    audited = Audited(tmp_path, level=level)
    audited.audit.changed(asked(), changes(1))
    audited.audit.close()
    assert len(audited.lines() if audited.path.exists() else []) == number


def test_what_was_changed_is_recorded_whatever_the_limit_and_attempts_within_it(tmp_path: Path):
    audited = Audited(tmp_path, max_bytes_per_second=1024)
    audited.audit.changed(asked(), changes(300))
    audited.audit.changed(asked(), changes(300, "UNKNOWN_SERVER_ERROR"))
    audited.now += 100
    audited.audit.changed(asked(), changes(1, "UNKNOWN_SERVER_ERROR"))
    lines = audited.closed()
    ends = [line["error"] for line in lines if line["event"] == "change"]
    assert (ends.count("NONE"), ends.count("UNKNOWN_SERVER_ERROR")) == (300, 1)
    [told] = [line for line in lines if line["event"] == "left_out"]
    assert (told["failed_changes"], told["denied"], told["allowed"]) == (300, 0, 0)
    assert audited.audit.left_out() == {"denied": 0, "allowed": 0, "failed_changes": 300}


async def test_many_changes_are_written_in_turns_and_in_order(tmp_path: Path):
    audited = Audited(tmp_path)
    audited.audit.start()
    audited.audit.changed(asked(), changes(1000))
    audited.audit.changed(asked("User:bob"), changes(1))
    assert len(audited.lines()) == 100
    async with asyncio.timeout(60):
        while len(audited.lines()) < 1001:
            await asyncio.sleep(0.01)
    names = [line["acl"]["resource_name"] for line in audited.lines()]
    assert names == [*map(str, range(1000)), "0"]
    assert audited.closed()[-1]["principal"] == "User:bob"


def test_kafkas_form_has_changes_by_a_logger_of_their_own(tmp_path: Path):
    audited = Audited(tmp_path, format="kafka")
    context = asked(client_id="x\n[2026-11-21 00:00:00,000] \u2028")
    audited.audit.changed(context, changes(1))
    audited.audit.close()
    [line] = audited.path.read_text().splitlines()
    found = re.fullmatch(r"\[[-0-9 :,]{23}\] INFO (\{.*\}) \(aclbroker\.audit\)", line)
    assert found is not None
    assert json.loads(found[1])["client_id"] == context.client_id


@pytest.mark.parametrize("form", ["console", "json"])
def test_without_a_file_changes_stand_among_the_lines_of_the_log(form: str):
    stream = io.StringIO()
    audit = Audit(load(None, {}), "cluster-1", logs.configure("error", form, stream))
    audit.changed(asked(), changes(1))
    [line] = stream.getvalue().splitlines()
    expected = " change cluster_id=cluster-1 " if form == "console" else '"event":"change"'
    assert expected in line


def test_all_principals_and_long_texts_are_told_as_in_decisions(tmp_path: Path):
    session = Session(("User:alice", "Group:" + "g" * 2000), "::1", "SSL")
    context = asked(client_id="c" * 300)._replace(session=session)
    message = "m" * 1000
    audited = Audited(tmp_path)
    change = Change("CREATE_ACL", {"acl": {"resource_name": "r" * 300}}, "INVALID_REQUEST", message)
    audited.audit.changed(context, [change])
    [line] = audited.closed()
    assert line["principals"] == ["User:alice", "Group:" + "g" * 1018]
    assert line["acl"] == {"resource_name": "r" * 256, "shortened": {"resource_name": 300}}
    assert line["error_message"] == "m" * 256
    assert line["shortened"] == {"client_id": 300, "error_message": 1000}


@pytest.mark.parametrize(
    "text", ["orders", 'a "b" \\ c', "\x00\n\x1f\x7f", "zürich 名 \U0001f600", ""]
)
@pytest.mark.parametrize("error_message", [None, "", 'not "here"'])
def test_an_acl_is_recorded_whatever_its_texts_have_in_them(
    tmp_path: Path, text: str, error_message: str | None
):
    audited = Audited(tmp_path)
    acl = deny(f"User:{text}", READ, text or "*", host=text)
    audited.audit.changed(asked(), [Change("CREATE_ACL", {"acl": acl}, "NONE", error_message)])
    audited.audit.close()
    [line] = audited.path.read_text("ascii").splitlines()
    assert "\x7f" not in line
    found = json.loads(line)
    assert found["error_message"] == error_message
    assert found["acl"] == {
        "resource_type": "TOPIC",
        "resource_name": text or "*",
        "pattern_type": "LITERAL",
        "principal": f"User:{text}",
        "host": text,
        "operation": "READ",
        "permission_type": "DENY",
    }
    assert "shortened" not in found


@pytest.mark.parametrize("key", ["name", "principal", "host"])
def test_a_long_text_of_an_acl_is_shortened_and_its_length_told(tmp_path: Path, key: str):
    audited = Audited(tmp_path)
    texts = {"principal": "User:a", "name": "orders", "host": "*"} | {key: "User:" + "x" * 32_000}
    acl = deny(texts["principal"], READ, texts["name"], host=texts["host"])
    audited.audit.changed(asked(), [Change("CREATE_ACL", {"acl": acl})])
    audited.audit.close()
    [line] = audited.lines()
    shown = "resource_name" if key == "name" else key
    assert line["acl"]["shortened"] == {shown: 32_005}
    assert 200 < len(line["acl"][shown]) < 2_000
