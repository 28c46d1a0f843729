r"""Regular expressions that choose names have the same meaning as in RE2/J, which Kafka uses."""

from __future__ import annotations

import re
import string
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.broker.memory.name_regex import NameRegex, NameRegexError
from tests.support.packages import java_command, kafka_jars
from tests.support.tables import check_each

_PROGRAM = Path(__file__).parent / "java" / "Patterns.java"

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
    regex, oracle = NameRegex(pattern), re.compile(pattern, re.ASCII)
    for name in names:
        assert regex.matches(name) == (oracle.fullmatch(name) is not None)


EXAMPLES: tuple[tuple[str, list[str], list[str]], ...] = (
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
    ("[ä-ü]|ö|é", ["ö", "ü"], ["a"]),
    ("(?U)a+", ["aa"], [""]),
    ("()", [""], ["a"]),
    ("", [""], ["a"]),
    ("(a*)*", ["", "aaa"], ["b"]),
    ("a{249}", ["a" * 249], ["a" * 248]),
    (r"\C", ["a"], ["ab"]),
    (r"[\x41-\x43]", ["B"], ["D"]),
)


def test_a_pattern_matches():
    check_each(EXAMPLES, _check_matches)


def _check_matches(example: tuple[str, list[str], list[str]]) -> None:
    pattern, matching, others = example
    regex = NameRegex(pattern)
    assert [name for name in matching if not regex.matches(name)] == []
    assert [name for name in others if regex.matches(name)] == []


REFUSED = (
    "(", "a)", "[", "[a", "[z-a]", "*", "a**", "a+*", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)",
    r"(a)\1", r"\8", "a{1001}", "a{2,1}", "a\\", "[\\", "[[:nothing:]]", "(?P<>x)", "(?P<a", "(?z)",
    "(?", "(?i", "(?i-)", r"\xzz", r"\x{110000}", r"\p{", r"\y", "[a-", r"\x{", r"\p1", "(?-)", ")",
    "(?P=a)", "(?#c)", "x{2}{3}", "a++", r"\Z", r"\G", r"[a-\d]", r"\E", r"\cA", r"\e", r"\R",
    r"\u0041", "(?x) a", "{1}", "(?'a'b)", r"\p{ASCII}", r"\p{L", "[[:alpha:]",
)  # fmt: skip

MORE = (
    "a{1,}", "a??", "(?>a)", "[[.a.]]", "[[=a=]]", r"[\d-z]", "[^]a]", r"\Q*\E", r"\Q*", r"\07",
    r"\a\f\t\n\r\v", "(?U)a+", "(?-s:.)", "(?i-i)a", "é", "[é-ü]", "[^é]", "..", r"\x{1F600}",
    "[\U0001f600-\U0001f64f]", r"\pN", r"\p{Nd}", r"\P{Lu}", r"\P{^Lu}", r"(?i)\p{Lu}", "(?i)k",
    "(?i)\u017f", "(?i)é", "(?i)ß", r"\w", r"\d", r"\s", r"\W", r"\bk\b", "^*", "$*", "|", "a|",
    "(|a)", "a{0}", "(?:)", "\\\n", "a\nb", "[\n]", "\x00", r"\_", r"\ ", "(a*)+",
    "[a-z&&[^b]]", "[a[b]]", "[a-b-c]", "[--a]", "[+--]", r"\p{Any}", r"\p{Latin}", r"[^\PN]",
    "[[:^word:]]",
    "(?i)[k-s]",
)  # fmt: skip

NAMES = (
    "", "a", "A", "b", "ab", "aa", "1", "k", "K", "\u212a", "s", "\u017f", "é", "É", "ü", "ß", "٣",
    "Ⅷ", "²", "\u03b1", "_", "-", " ", "\n", "\t", "\x00", "a\nb", "\U0001f600", "{", "]", "a]",
    "[", "a{", "*", "aaaa", "\x0b", "\x07", ".", ":", "ÿ", "\x7f", "Ā", "一", "\x85", "abc", "ac",
    "&", "orders-eu",
)  # fmt: skip


@pytest.fixture(scope="module")
def re2j() -> Callable[[Sequence[str]], list[str]]:
    """A function that returns RE2/J's result for each expression, as `Patterns.java` prints it."""

    def ask(patterns: Sequence[str]) -> list[str]:
        lines = [
            " ".join(f".{text.encode().hex()}" for text in (each, *NAMES)) for each in patterns
        ]
        command = java_command(str(_PROGRAM), kafka_jars(), minimum=17)
        asked = "\n".join(lines).encode()
        answer = subprocess.run(command, input=asked, capture_output=True, check=True)
        return answer.stdout.decode().splitlines()

    return ask


def ours(pattern: str) -> str:
    """Return our result for an expression in the form that `Patterns.java` prints."""
    try:
        regex = NameRegex(pattern)
    except NameRegexError as error:
        return f"!{error}"
    return "=" + "".join("1" if regex.matches(name) else "0" for name in NAMES)


def test_expressions_match_and_are_refused_as_by_re2j(
    re2j: Callable[[Sequence[str]], list[str]],
):
    # The messages must be equal, too, because Kafka sends them to its clients.
    accepted = [pattern for pattern, _, _ in EXAMPLES if pattern != r"\C"]
    patterns = [*REFUSED, *MORE, *accepted]
    assert [ours(each) for each in patterns] == re2j(patterns)


def test_the_differences_from_re2j_are_those_that_the_documentation_names(
    re2j: Callable[[Sequence[str]], list[str]],
):
    differing = (r"\C", "(?P<a>x)(?P<a>y)", "(?P<é>a)", r"\é", "((a{100}){100}){2}")
    kafka = [each[0] for each in re2j(differing)]
    assert kafka == ["!", "!", "!", "=", "="]
    assert [ours(each)[0] for each in differing] == ["=", "=", "=", "!", "!"]


def test_what_is_no_expression_is_refused():
    too_large = "((a{100}){100}){100}", "(((){1000}){1000}){1000}"
    check_each((*REFUSED, *too_large), _check_refused)


def _check_refused(pattern: str) -> None:
    with pytest.raises(NameRegexError):
        NameRegex(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "a" * 30_000,
        "|".join(f"orders-{number}" for number in range(2_500)),
        r"\pL" * 100,
        "[a-z]?" * 500,
        "x{0,9}" * 100,
        r"\pL{0,1000}",
        ".{0,1000}x",
        "x{0,240}|" * 12,
    ],
)
def test_an_expression_that_takes_long_to_compile_is_refused_with_what_is_possible(pattern: str):
    with pytest.raises(NameRegexError, match=r"too large: at most 4,000 characters"):
        NameRegex(pattern)


def test_an_expression_that_takes_long_for_a_long_name_is_refused_for_that_name():
    regex = NameRegex(".{0,250}a")
    assert regex.matches("a" * 249)
    with pytest.raises(NameRegexError, match="too large for a name of 32,000 characters"):
        regex.matches("a" * 32_000)
    assert NameRegex("a.*").matches("a" * 32_000)


def test_an_expression_that_backtracking_takes_forever_for_is_matched_at_once():
    regex = NameRegex("(a*)*(a|aa)+(.*)*b")
    assert not regex.matches("a" * 249)
    assert regex.matches("a" * 248 + "b")


@given(st.text(string.printable + "äß", max_size=12))
def test_any_text_is_compiled_or_refused(pattern: str):
    try:
        NameRegex(pattern).matches("orders-eu.1")
    except NameRegexError:
        return
