"""The case of names, as Java changes it."""

import random

from aclbroker.broker.auth.mapping.mapping_rules import CASES, MappingFailed
from tests.auth.java_names import JavaNames

SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"


def test_names_change_their_case_as_in_java(java: JavaNames):
    chance = random.Random(1)
    letters = "aAB\u03b1\u0391\xe9\xdf\u0130\u0131\u01c5\u4e2d\xaa\u02b0\u24b6"
    chars = f"{SIGMA * 6}{letters} ,=+@/.-_'\\:1\u0301\u0345"
    with_sigma = refused = 0
    for _ in range(6000):
        text = "".join(chance.choices(chars, k=chance.randint(1, 7)))
        try:
            lower = CASES["L"](text)
        except MappingFailed:
            refused += 1
            continue
        assert [lower, CASES["U"](text)] == java.ask("case", text)
        with_sigma += SIGMA in text
    assert with_sigma > 500
    assert refused > 500


def test_each_letter_changes_its_case_as_in_java(java: JavaNames):
    text = "".join(map(chr, [*range(0x20, 0x530), *range(0x1E00, 0x2000)])).replace(SIGMA, "")
    # These two have capital letters since Unicode 16.
    text = text.replace("\u019b", "").replace("\u0264", "")
    assert [CASES["L"](text), CASES["U"](text)] == java.ask("case", text)


def test_without_an_option_the_case_stays():
    assert CASES[""](f"aB{SIGMA}.") == f"aB{SIGMA}."
