"""Groups files: what a person may write, and what they are told of a mistake."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.files import groups as groups_file
from aclbroker.acl.files.groups import GroupsError, parse_groups, read_groups


def test_what_a_person_may_write() -> None:
    groups = parse_groups("""
# Reviewed in June
version: 1
groups:
  staff: [User:alice, "User:bob"]
  "payments: EU":
  - User:alice
  - User:CN=carol,OU=Payments
  - User:alice      # twice
  no: 'User:dave'
  1.0: []
""")
    assert groups.of("User:alice") == ("Group:payments: EU", "Group:staff")
    assert groups.of("User:bob") == ("Group:staff",)
    assert groups.of("User:CN=carol,OU=Payments") == ("Group:payments: EU",)
    assert groups.of("User:dave") == ("Group:no",)
    assert len(parse_groups("{version: 1, groups: {}}")) == 0


def test_a_long_file_is_read_in_pieces_with_pauses_between_them() -> None:
    pauses: list[None] = []
    members = "".join(f"  - User:{number}\n" for number in range(1_000))
    groups = parse_groups(f"{_START}  a:\n{members}", pause=lambda: pauses.append(None))
    assert len(groups) == 1_000
    assert len(pauses) == 5


def test_the_examples_of_the_documentation_do_what_it_says() -> None:
    page = (Path(__file__).parents[3] / "docs" / "principals.md").read_text()
    [text] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    groups = parse_groups(text)
    assert groups.of("User:alice") == ("Group:payments", "Group:staff")
    assert groups.of("User:CN=billing,OU=Shop") == ("Group:payments",)
    [told] = re.findall(r"\.yaml: (line .*)\n", page)
    with pytest.raises(GroupsError, match=re.escape(told)):
        parse_groups(text.replace("- User:alice", "- bob"))


_START = "version: 1\ngroups:\n"
_MANY = "".join(f"  g{number}: User:alice\n" for number in range(1_001))


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "line 1, column 1", "the file is empty; a groups file begins with 'version: 1'"),
        ("- a", "line 1, column 1", "the groups file must be a mapping"),
        ("version: 2\ngroups: {}\n", "line 1, column 10", "version 2 is not known, only 1"),
        ("groups: {}\n", "line 1, column 1", "the groups file has no 'version'"),
        ("version: 1\n", "line 1, column 1", "the groups file has no 'groups'"),
        ("version: 1\ngroup: {}\n", "line 2, column 1", "no key 'group', only version, groups"),
        ("version: 1\ngroups:\n", "line 2, column 8", "'groups' must be a mapping"),
        ("version: 1\ngroups: [a]\n", "line 2, column 9", "'groups' must be a mapping"),
        (_START + "  a: []\n  a: []\n", "line 4, column 3", "'a' stands twice in 'groups'"),
        (_START + "  a:\n", "line 3, column 5", "'a' has no value"),
        (_START + "  a:\n  -\n", "line 4, column 4", "'a' has no value"),
        (_START + "  a: {b: c}\n", "line 3, column 6", "'a' must be a list"),
        (_START + "  a: [User:b, bob]\n", "line 3, column 15", "such as User:alice; 'bob' is not"),
        (_START + f"  a: [User:{'b' * 1020}]\n", "line 3, column 7", "a member has 1,025 char"),
        (_START + "  a: ['User:']\n", "line 3, column 7", "'User:' is not"),
        (_START + "  a: ['User:*']\n", "line 3, column 7", "User:* is no member"),
        (_START + "  a: [Group:b]\n", "line 3, column 7", "groups have no groups as members"),
        (_START + "  Group:a: []\n", "line 3, column 3", "is named without Group:"),
        (_START + "  '*': []\n", "line 3, column 3", "cannot have the name *"),
        (_START + "  '': []\n", "line 3, column 3", "the name of a group is empty"),
        (_START + "  a: *b\n", "line 3, column 6", "quote the text"),
        (_START + "  a: *\n", "line 3, column 7", "quote a text that begins with *"),
        (_START + "  a: ['User:b\n", "line 4, column 1", "unexpected end of stream"),
        ("version: 1\ngroups: &all {}\n", "line 2, column 9", "anchors (&) and tags (!) are not"),
        (_START + "  a: []\n---\n", "line 4, column 1", "here a second begins"),
        (_START + _MANY, "line 1003, column 10", "'User:alice' is in more than 1,000 groups"),
    ],
)
def test_an_error_names_the_file_the_place_and_what_is_wrong(
    text: str, place: str, problem: str
) -> None:
    with pytest.raises(GroupsError) as error:
        parse_groups(text, "groups.yaml")
    message = str(error.value)
    assert message.startswith(f"groups.yaml: {place}: "), message
    assert problem in message


@given(st.text("version: 1\ngroups-[]{}&*!|>'\"?#,%@\t", max_size=60) | st.binary(max_size=20))
def test_any_text_is_a_groups_file_or_an_error(text: str | bytes) -> None:
    with suppress(GroupsError):
        parse_groups(text)


def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "groups.yaml"
    path.write_text(_START + "  a: []\n")
    monkeypatch.setattr(groups_file, "MOST_BYTES", path.stat().st_size)
    assert read_groups(str(path)).names == 0
    path.write_text(_START + "  ab: []\n")
    with pytest.raises(GroupsError, match="more than 27 bytes, which is the limit"):
        read_groups(str(path))


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(GroupsError, match=f"{path}: not a regular file"):
            read_groups(str(path))
    with pytest.raises(OSError, match="No such file"):
        read_groups(str(tmp_path / "gone"))
