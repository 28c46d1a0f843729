"""The checker of words: what it reads of a file, and when it fails."""

import pytest

from tools.check_words import compare, findings, room_of


def patterns_in(source: str, path: str = "src/aclbroker/broker/stores/x.py") -> list[str]:
    return [finding.pattern for finding in findings(path, source)]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Return what is stored.", "what"),
        ("The store tells its followers.", "tell"),
        ("A lock that nobody holds.", "nobody"),
        ("The name of who created it.", "who"),
        ("Of two records the newer counts.", "beginning"),
        ("Clients are let in.", "house words"),
        ("word " * 30, "long sentence"),
    ],
)
def test_each_pattern_is_found_in_docstrings_comments_messages_and_docs(text: str, pattern: str):
    assert patterns_in(f'"""{text}"""') == [pattern]
    assert patterns_in(f"# {text}\nx = 1") == [pattern]
    assert patterns_in(f'raise ValueError("{text}")') == [pattern]
    assert patterns_in(f"# Title\n\n{text}\n", "docs/x.md") == [pattern]


def test_plain_sentences_questions_and_code_count_for_nothing():
    assert patterns_in('"""Return the ACLs of a principal. The store keeps them."""') == []
    assert patterns_in("# What is a resource pattern?\n") == []
    assert patterns_in("Run `what is told`.\n\n    who tells nobody\n", "docs/x.md") == []


def test_a_sentence_may_go_over_several_lines_of_a_comment():
    [found] = findings("tests/x.py", "x = 1\n# The record of\n# who created it.\n")
    assert (found.line, found.sentence) == (2, "The record of who created it.")


def test_a_room_with_more_findings_than_its_budget_is_reported():
    assert compare({"docs": {"tell": 2}}, {"docs": {"tell": 2}}) == []
    assert compare({"docs": {"tell": 1}}, {"docs": {"tell": 2}}) == []
    assert len(compare({"docs": {"tell": 3}}, {"docs": {"tell": 2}})) == 1
    assert len(compare({"docs": {"tell": 1}}, {})) == 1


def test_a_room_is_a_folder():
    assert room_of("src/aclbroker/broker/stores/kafka/store.py") == "src/aclbroker/broker/stores"
    assert room_of("src/aclbroker/terminal.py") == "src/aclbroker"
    assert room_of("tests/acl/test_index.py") == "tests"
    assert room_of("README.md") == "."
