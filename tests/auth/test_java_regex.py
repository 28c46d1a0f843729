"""Java regular expressions: what is accepted means what it means in Java, the rest is refused."""

from __future__ import annotations

import random
import sys
from functools import partial

import pytest

from aclbroker.broker.auth.mapping.java_regex import JavaRegex, RegexError, UndecidableError
from aclbroker.broker.auth.mapping.java_regex.charset import POSIX, PREDEFINED
from aclbroker.broker.auth.mapping.java_regex.regex import LONGEST_TEXT
from tests.auth.java_names import JavaNames
from tests.auth.regex_examples import (
    ACCEPTED,
    REFUSED,
    SUBJECTS,
    generated,
    generated_subject,
)
from tests.support.tables import check_each


def ours(regex: JavaRegex, replacement: str, text: str) -> list[str] | None:
    """What `JavaNames.ask("regex", ...)` answers, or None if it depends on halves of characters."""
    parsed = regex.replacement(replacement)
    try:
        return [
            str(regex.matches(text)).lower(),
            regex.replace(text, parsed),
            regex.replace(text, parsed, first_only=True),
        ]
    except UndecidableError:
        return None


def all_groups(regex: JavaRegex) -> str:
    """A replacement that shows what was found and each group that can be told."""
    shown = "[$0"
    for group in range(1, min(regex.groups, 9) + 1):
        try:
            regex.replacement(f"${group}")
        except RegexError:
            continue
        shown += f"<${group}>"
    return shown + "]"


def test_what_is_accepted_is_what_java_makes_of_it(java: JavaNames):
    def check(pattern: str) -> None:
        regex = JavaRegex(pattern)
        replacement = all_groups(regex)
        answers = [(ours(regex, replacement, text), text) for text in SUBJECTS]
        told = [(answer, text) for answer, text in answers if answer is not None]
        assert len(told) >= len(SUBJECTS) - 4
        for answer, text in told:
            assert answer == java.ask("regex", pattern, replacement, text), text

    check_each(ACCEPTED, check)


def test_what_is_refused_is_named_with_its_position():
    check_each(REFUSED, _check_refused)


def _check_refused(case: tuple[str, int, str]) -> None:
    pattern, position, reason = case
    with pytest.raises(RegexError) as error:
        JavaRegex(pattern)
    assert str(error.value).startswith(f"at character {position}: ")
    assert reason in str(error.value)
    assert error.value.position == position - 1


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(3, 10))]
)
def test_generated_expressions_are_what_java_makes_of_them_or_refused(java: JavaNames, seed: int):
    chance = random.Random(seed)
    compared = 0
    for _ in range(400):
        pattern = generated(chance)
        try:
            regex = JavaRegex(pattern)
        except RegexError:
            continue
        replacement = all_groups(regex)
        for text in [generated_subject(chance) for _ in range(3)]:
            answer = ours(regex, replacement, text)
            if answer is not None:
                assert answer == java.ask("regex", pattern, replacement, text), (pattern, text)
                compared += 1
    assert compared > 600


EVERY_CHARACTER = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)]))
CLASSES = [
    *(f"\\{letter}" for letter in PREDEFINED),
    *(f"\\p{{{name}}}" for name in POSIX),
    *(f"\\P{{{name}}}" for name in POSIX),
    ".",
    "(?s).",
    "(?i)k",
    "(?i)[^s]",
    "(?i)[a-z&&[^i]]",
    "(?i)[T-c]",
    "(?i)\u00e9",
]


@pytest.mark.thorough
def test_a_class_has_the_same_characters_as_in_java(java: JavaNames):
    def check(pattern: str) -> None:
        regex = JavaRegex(pattern)
        for start in range(0, len(EVERY_CHARACTER), LONGEST_TEXT):
            some = EVERY_CHARACTER[start : start + LONGEST_TEXT]
            left = regex.replace(some, regex.replacement(""))
            assert [left] == java.ask("regex", pattern, "", some)[1:2]

    check_each(CLASSES, check)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("x*", "\U0001f600"),
        ("(?<!y).x", "y\U0001f600x"),
        ("[^a]b|[^a]c", "\U0001f600d"),
        ("$", "\U0001f600"),
        ("(?<=a.)x", "a\U0001f600x"),
    ],
)
def test_a_text_whose_halves_java_might_tell_apart_is_refused(pattern: str, text: str):
    regex = JavaRegex(pattern)
    with pytest.raises(UndecidableError):
        regex.replace(text, regex.replacement("-"))


def test_a_lookbehind_over_such_a_text_is_refused():
    with pytest.raises(UndecidableError):
        JavaRegex("a.(?<=a.)").matches("a\U0001f600")


def test_characters_beyond_the_first_plane_are_otherwise_no_matter():
    regex = JavaRegex("CN=(.*?),O=\U0001f600(.*)")
    text = "CN=\U0001f64f\U00020000,O=\U0001f600\U0001f601"
    assert regex.matches(text)
    assert regex.replace(text, regex.replacement("$2$1")) == "\U0001f601\U0001f64f\U00020000"
    literal = JavaRegex("CN=")
    assert literal.replace(text, literal.replacement("")) == text.removeprefix("CN=")


REPLACEMENTS = [
    "",
    "plain",
    "$0",
    "$1$2",
    "$2x$1",
    "$10",
    "$12$21",
    "\\$1",
    "\\\\$1",
    "\\a\\b",
    "${who}",
    "${who}${who}0",
    "$1{who}",
    "\U0001f600\\\U0001f600",
]


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_replacements_are_those_of_java(java: JavaNames, replacement: str):
    pattern, text = "(?<who>[a-z])(\\d)?", "a1b-c2"
    regex = JavaRegex(pattern)
    assert ours(regex, replacement, text) == java.ask("regex", pattern, replacement, text)


BAD_REPLACEMENTS = [
    ("a$", 2, "neither $n"),
    ("\\", 1, "neither $n"),
    ("$a", 1, "neither $n"),
    ("${who", 1, "neither $n"),
    ("${1}", 1, "neither $n"),
    ("${}", 1, "neither $n"),
    ("$3", 1, "$3 is no group"),
    ("x${nobody}", 2, "${nobody} is no group"),
    ("$\u0661", 1, "neither $n"),
]


@pytest.mark.parametrize(("replacement", "position", "reason"), BAD_REPLACEMENTS)
def test_a_replacement_that_java_cannot_make_is_refused_at_once(
    java: JavaNames, replacement: str, position: int, reason: str
):
    pattern = "(?<who>[a-z])(\\d)?"
    with pytest.raises(RegexError) as error:
        JavaRegex(pattern).replacement(replacement)
    assert str(error.value).startswith(f"at character {position}: {reason}")
    assert java.ask("regex", pattern, replacement, "a")[1].startswith("!")


def test_a_group_that_is_repeated_cannot_be_referred_to():
    regex = JavaRegex("(a(b)|c)+(d)")
    for each, replacement in ((regex, "$1"), (regex, "x$2"), (JavaRegex("(a){1}"), "$1")):
        with pytest.raises(RegexError, match="is repeated, and the engines differ"):
            each.replacement(replacement)
    assert regex.replace("abcd", regex.replacement("$3$0")) == "dabcd"


@pytest.mark.parametrize(
    "pattern",
    [
        "([^,\\\\]|\\\\,)*;",
        "([^,]|\\\\,)*;",
        "(?:a{1,3}){3};",
        "([a-z]+\\.)+;",
        "(?:a*b)*;",
        "(?:(?:[a-z]+=)+,)*;",
        "(?:\\d{1,3}\\.){3}\\d{1,3};",
        "(?:[0-9a-f]{2}:)*;",
        "(?:[a-z]{2,30}\\.)+;",
        "(?:ab?)+;",
        "(a|b|c)+;",
    ],
)
def test_repeated_groups_that_cannot_take_exponentially_long_are_accepted(pattern: str):
    regex = JavaRegex(pattern)
    for text in ("a" * 1000, "a." * 500, "ab" * 500, "\\," * 500, "a=," * 333, "11:" * 333):
        assert not regex.matches(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (".*a.*a.*a.*b", "a" * 300),
        ("(.*?)a(.*?)a(.*?)ab", "a" * 300),
        ("(?:.*a){3}b", "a" * 300),
        ("(?=.*a.*a.*a.*b)a", "a" * 300),
        ("(?!.*a.*a.*a.*b)c", "a" * 300),
        ("(?:a|b|ab)(?:[ab]*a[ab]*a[ab]*a)c", "ab" * 150),
        ("(a*)(a*)(a*)(\\1)c", "a" * 300),
        ("a{0,40}a{0,40}a{0,40}a{0,40}b", "a" * 300),
    ],
)
def test_what_could_be_matched_in_too_many_ways_is_refused_before_it_is_tried(
    pattern: str, text: str
):
    regex = JavaRegex(pattern)
    for attempt in (regex.matches, partial(regex.replace, replacement=regex.replacement(""))):
        with pytest.raises(UndecidableError, match="too many ways"):
            attempt(text)


@pytest.mark.parametrize("pattern", ["[^x]*y", ".*@example", "b[a-z]*;"])
def test_to_search_from_each_place_counts(pattern: str):
    """The engine looks at the rest of the text once for each place that it begins at."""
    regex = JavaRegex(pattern)
    assert not regex.matches("ab" * 500)
    assert regex.replace("ab" * 50, regex.replacement("")) == "ab" * 50
    with pytest.raises(UndecidableError, match="too many ways"):
        regex.replace("ab" * 500, regex.replacement(""))


def test_what_matches_from_the_beginning_is_not_searched_for():
    regex = JavaRegex(".*CN=([^,]+).*")
    assert regex.replace("CN=duke," + "x" * 900, regex.replacement("$1")) == "duke"


def test_a_group_repeated_twice_or_thrice_is_counted_as_that():
    regex = JavaRegex("(?:\\w{1,3}\\.){3}\\w{1,3}")
    assert regex.matches("111.222.333.444")
    assert JavaRegex("(?:(?:[^,]*,){2,3}){2}").matches("a,b,c,d,e,f,")


def test_longer_texts_are_refused():
    regex = JavaRegex("a*")
    assert regex.matches("a" * 1000)
    assert regex.replace("a" * 1000, regex.replacement("")) == ""
    with pytest.raises(UndecidableError, match="longer than 1000 characters"):
        regex.matches("a" * 1001)
    with pytest.raises(UndecidableError, match="longer than 1000 characters"):
        regex.replace("a" * 1001, regex.replacement(""))


def test_a_long_expression_with_many_ways_is_refused_and_not_thought_about_for_long():
    with pytest.raises(RegexError, match="divided in more than one way"):
        JavaRegex("(?:" + "[a-z]{0,30}x" * 40 + ")+")


def test_an_expression_needs_nothing_of_the_interpreters_recursion_limit():
    limit = sys.getrecursionlimit()
    assert JavaRegex("a|" * limit * 2).matches("")
    assert JavaRegex("(" * 50 + "a" + ")" * 50).matches("a")
