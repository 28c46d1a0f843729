"""The tutorials of docs/, followed word by word in an empty directory."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.toolchain import require
from tests.support.tutorial import Reader, blocks, shown_as

ROOT = Path(__file__).parents[2]
TOOLCHAINS = "curl", "mvn", "node", "npm", "go"
TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_does_what_it_shows(path: Path, reader: Reader):
    page = path.read_text()
    for program in TOOLCHAINS:
        if re.search(rf"^(aclbroker run .* -- )?{program} ", page, re.MULTILINE):
            require(program)
    reader.follow(page)
    assert len(reader.typed) >= 4


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_block_of_a_tutorial_is_a_file_or_typed_or_printed(path: Path):
    page = path.read_text()
    found = list(blocks(page))
    for block in found:
        assert block.file or block.kind in ("sh", "text"), block
    assert page.count("```") == 2 * len(found)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_readme_leads_to_each_tutorial(path: Path):
    assert f"](docs/{path.name})" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("one\ntwo\n", "one\ntwo\n"),
        ("one\n...\n", "one\n"),
        ("one\n...\n", "one\ntwo\nthree\n"),
        ("...\nthree\n", "one\ntwo\nthree\n"),
        ("one ... three\n", "one and two and three\n"),
        ("no line's end\n", "no line's end"),
    ],
)
def test_dots_stand_for_what_is_left_out(shown: str, printed: str):
    assert shown_as(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("one\n", "one\ntwo\n"),
        ("one\ntwo\n", "one\n"),
        ("...\ntwo\n", "one\ntwo\nthree\n"),
        ("one ... three\n", "one\nthree\n"),
        ("", "something\n"),
        ("a.c\n", "abc\n"),
    ],
)
def test_what_is_not_shown_may_not_be_printed(shown: str, printed: str):
    assert not shown_as(shown, printed)


WRONG = {
    "another output": "```sh\necho one\n```\n\n```text\ntwo\n```\n",
    "an output that is not shown": "```sh\necho one\n```\n\nThat is all.\n",
    "a status": "```sh\nfalse\n```\n",
    "another file": "`a`:\n\n```yaml\none\n```\n\n```sh\ncat a\n```\n\n```text\ntwo\n```\n",
    "no broker": "It prints\n\n```text\nready\n```\n",
}


@pytest.mark.parametrize("page", WRONG.values(), ids=WRONG.keys())
def test_a_page_that_is_wrong_is_noticed(page: str, reader: Reader):
    with pytest.raises(AssertionError, match=r"is shown to print|ended with status|no broker runs"):
        reader.follow(page)
