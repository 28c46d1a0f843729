r"""Regular expressions that choose topics, in RE2's syntax."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.broker.memory.groups.topic_regex import TopicRegex
from aclbroker.broker.memory.groups.topic_regex_syntax import RegexError

_PIECES = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        "[a-c.]",
        r"\.",
        r"\d",
        r"\w",
        "(a|b)",
        "(?:ab|c)",
        "",
        "-",
        "_",
    ]
)
_REPEATS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])
_TERMS = st.tuples(_PIECES, _REPEATS).map(lambda both: both[0] and "".join(both))
_SEQUENCES = st.lists(_TERMS, max_size=5).map("".join)
_PATTERNS = st.lists(_SEQUENCES, min_size=1, max_size=3).map("|".join)


@given(_PATTERNS, st.lists(st.text("ab.c-_1", max_size=6), max_size=5))
def test_whole_names_match_as_everywhere_where_syntaxes_agree(pattern: str, names: list[str]):
    regex, oracle = TopicRegex(pattern), re.compile(pattern, re.ASCII)
    for name in names:
        assert regex.matches(name) == (oracle.fullmatch(name) is not None)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders.*", ["orders", "orders-eu"], ["order", "my-orders"]),
        ("^orders$", ["orders"], ["orders1"]),
        ("(?i)ORDERS", ["orders", "Orders"], ["order"]),
        ("(?i:A)b", ["ab", "Ab"], ["aB"]),
        ("(?i)a(?-i)b", ["ab", "Ab"], ["aB"]),
        ("a(?i)b|c", ["aB", "C"], ["AB"]),
        ("[[:alpha:]]+", ["abc"], ["a1"]),
        ("[[:^alpha:]_]+", ["1_"], ["a1"]),
        (r"[\w.]+", ["a.b_1"], ["a-b"]),
        (r"[^\d]+", ["ab"], ["a1"]),
        (r"\pL+\PL", ["abc1"], ["abcd"]),
        (r"\p{Lu}\p{^Lu}\p{Greek}*", ["Ab"], ["ab"]),
        (r"\Qa.b\E+", ["a.b"], ["axb"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"\x61\x{62}\143", ["abc"], ["ab"]),
        (r"a\b-\bb", ["a-b"], ["a-"]),
        (r"a\Bb", ["ab"], ["a-b"]),
        (r"\Aa\z", ["a"], ["aa"]),
        ("(?m)^a$", ["a"], ["b"]),
        ("(?s).", ["a"], ["ab"]),
        ("(?P<name>a)(?<other>b)", ["ab"], ["a"]),
        ("a{,2}", ["a{,2}"], ["aa"]),
        ("a{", ["a{"], ["a"]),
        ("[]a]+", ["a", "a"], ["b"]),
        ("[a-]+", ["a-"], ["b"]),
        ("[ä-ü]|ö|é", [], ["a"]),
        ("(?U)a+", ["aa"], [""]),
        ("()", [""], ["a"]),
        ("", [""], ["a"]),
        ("(a*)*", ["", "aaa"], ["b"]),
        ("a{1000}", ["a" * 1000], ["a" * 999]),
        (r"\C", ["a"], ["ab"]),
        (r"[\x41-\x43]", ["B"], ["D"]),
    ],
)
def test_a_pattern_matches(pattern: str, matching: list[str], others: list[str]):
    regex = TopicRegex(pattern)
    assert [name for name in matching if not regex.matches(name)] == []
    assert [name for name in others if regex.matches(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[", "[a", "[z-a]", "*", "a**", "a+*", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)",
        r"(a)\1", r"\8", "a{1001}", "a{2,1}", "a\\", "[\\", "[[:nothing:]]", "(?P<a>x)(?P<a>y)",
        "(?P<>x)", "(?P<a", "(?z)", "(?", "(?i", "(?i-)", r"\xzz", r"\x{110000}", r"\p{",
        r"\y", "(" * 300 + ")" * 300, "((a{100}){100}){100}", "(((){1000}){1000}){1000}",
        "[a-", r"\x{", r"\p1", "(?-)",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(pattern: str):
    with pytest.raises(RegexError):
        TopicRegex(pattern)


def test_an_expression_that_backtracking_takes_forever_for_is_matched_at_once():
    regex = TopicRegex("(a*)*(a|aa)+(.*)*b")
    assert not regex.matches("a" * 249)
    assert regex.matches("a" * 248 + "b")


@given(st.text(string.printable + "äß", max_size=12))
def test_any_text_is_compiled_or_refused(pattern: str):
    try:
        TopicRegex(pattern).matches("orders-eu.1")
    except RegexError:
        return
