"""Text files of users in encodings other than UTF-8 are read, or refused with the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclbroker.acl.files.groups import read_groups
from aclbroker.acl.files.invariants import InvariantError, parse_invariants, read_invariants
from aclbroker.acl.files.text_files import TextFileError, text_of
from aclbroker.broker.config import ConfigError, load
from aclbroker.pipeline.acls.broker_properties import PropertiesError, read_broker_properties

GROUPS = "version: 1\ngroups:\n  staff: [User:é]\n"
INVARIANTS = "version: 1\ninvariants:\n- nobody but User:é may READ topic x\n"
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "groups": (GROUPS, lambda path: read_groups(str(path)).by_principal()),
    "invariants": (INVARIANTS, read_invariants),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "utf-16-le"])
def test_yaml_is_read_in_each_encoding_or_refused(
    tmp_path: Path, reader: str, encoding: str
) -> None:
    text, read = READERS[reader]
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    expected = read(path)
    path.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    if encoding in ("utf-8-sig", "utf-16"):
        assert read(path) == expected
    else:
        line = 1 if encoding == "utf-16-le" else 3
        with pytest.raises(ValueError, match=f"file.yaml: line {line}: .* save the file as UTF-8"):
            read(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a\nb\xe9\n", "names: line 2: 'utf-8' codec can't decode byte 0xe9"),
        (b"\xff\xfea\0\n\0\0\xd8", "names: line 2: 'utf-16-le' codec can't decode"),
        ("a\n".encode("utf-16-be") * 30, "names: line 1: it has bytes that are 0"),
    ],
)
def test_bytes_that_are_no_text_are_named_with_their_line(content: bytes, problem: str) -> None:
    with pytest.raises(TextFileError, match=problem):
        text_of(content, "names")


SETTINGS = "super.users=User:admin\r\nallow.everyone.if.no.acl.found=true \r\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (SETTINGS.encode("utf-8-sig"), "line 1: it begins with a byte order mark, which Java"),
        (SETTINGS.encode("utf-16"), "has bytes that are 0, as UTF-16 does"),
        (b"super.users=admin\n", "super.users"),
    ],
)
def test_properties_whose_first_setting_would_be_lost_are_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(content)
    with pytest.raises(PropertiesError, match=problem):
        read_broker_properties(str(path))
    with pytest.raises(ConfigError, match=problem):
        load(str(path))


def test_properties_with_a_mark_before_a_comment_and_blanks_at_line_ends_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(f"# ours\n{SETTINGS}".encode("utf-8-sig"))
    found = read_broker_properties(str(path))
    assert found.super_users == {"User:admin"}
    assert found.allow_everyone_if_no_acl_found


def test_a_file_of_invariants_without_a_statement_is_refused() -> None:
    with pytest.raises(InvariantError, match="'invariants' has no statement"):
        parse_invariants("version: 1\ninvariants: []\n")
