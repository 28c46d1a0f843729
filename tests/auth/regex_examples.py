"""Java regular expressions for tests: ones that people write, refused ones, generated ones."""

from __future__ import annotations

import random

ACCEPTED = [
    # Of Kafka's documentation and tests, and of forums.
    "^CN=(.*?),OU=ServiceUsers.*$",
    "^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$",
    "^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$",
    "^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$",
    ".*CN=([^,]+).*",
    "CN=(?<user>[^,]*),(?:OU|O)=.*",
    "(?i)cn=(host/)?([a-z0-9._-]+)(,.*)?",
    "CN=((?:[^,\\\\]|\\\\,)+),.*",
    ".*@MYDOMAIN\\.COM",
    "[^@]*@(?:FOO|BAR)\\.COM",
    "(hdfs|yarn)-?(\\d{1,3})@.*",
    "([a-z]+\\.)*com",
    # What the two languages write or read differently.
    "",
    ".",
    "(?s).",
    "a$",
    "a\\r$",
    "a\\Z",
    "a\\z",
    "\\Aa",
    "\\d+\\D",
    "\\w\\W",
    "\\s\\S",
    "\\h\\H",
    "\\v\\V",
    "\\p{Alpha}\\p{Digit}\\P{Punct}",
    "\\p{XDigit}+",
    "\\Qa.b\\E+",
    "\\Q[a]",
    "a\\Q\\E*",
    "\\\\Qa",
    "[\\Q]^-\\E]",
    "[a-\\Qc\\E]",
    "\\x61\\u0062\\x{63}\\0141\\0101",
    "\\0400",
    "\\t\\n\\r\\f\\a\\e|a",
    "[a-c[x-z]]",
    "[^a[b]]",
    "[a-z&&[^bc]]",
    "[a-z&&b-d]",
    "[^a-z&&[aeiou]]",
    "[a-z&&[abc]&&[bc]]",
    "[a&b]",
    "[&a]",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[-a]",
    "[a-c-e]",
    "[\\w-.]",
    "[\\]\\\\^$]",
    "[a-b[c]-e]",
    "[a-[c]]",
    "[^\\W_]",
    "[#|~-]",
    "[+--]",
    "a]b}",
    "(?i)a[b-c]\\x41",
    "(?i)[^a]",
    "a(?i)b|c",
    "(?:a(?i)b)c",
    "(?i:a)b(?-i:c)",
    "(?is-i)A.",
    "(a)(b)?(c)??",
    "(?:a|b|)c",
    "(|a)b",
    "(a)\\1",
    "(?<x>a)b\\k<x>",
    "(a)(?:\\1)2",
    "a{2}b{1,}c{0,2}?",
    "a*+b",
    "[ab]++c",
    ".{2,3}+a",
    "(?=a)[ab]",
    "(?!a)[ab]",
    "(?<=a)b",
    "(?<!a)b",
    "(?<=a|b)c",
    "(?<=a)(?:bc)+",
    "x*",
    "x*?",
    "(x*)",
    "a|ab",
    "(a|ab)(c|bcd)(d*)",
    "\u00e9+",
    "\U0001f600",
    "[\U0001f600-\U0001f64f]",
    "a\U0001f600?",
    "\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\^\\$\\|\\-\\/\\ \\\u00e9",
]

SUBJECTS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "ABC",
    "aab",
    "bca",
    "abcd",
    "a.b",
    "a]b}",
    "[a]",
    "a\n",
    "a\r\n",
    "\ra\r",
    "a\x85",
    "a\u2028b\u2029",
    " a\t\xa0b_1",
    "x\x0b\x0c",
    "aa2",
    "a1?-&",
    "\u00e9\u0130\u0131\u017f\u212a",
    "K\u00c9a",
    "\u0661a\u00df",
    "a\U0001f600",
    "\U0001f600b\U0001f64f",
    "xxaxx",
    "CN=duke,OU=ServiceUsers,O=Org,L=City,ST=State,C=Us",
    "cn=Duke,ou=people,dc=example,dc=com",
    "CN=Duke\\, the second,O=x",
    "CN=host/a.example.com,O=x",
    "hdfs-12@MYDOMAIN.COM",
    "www.example.com",
    "b\U0001f600x",
    "\\Qa",
    "-c",
    " 0",
    "bcbc",
]

REFUSED = [
    ("a\\b", 2, "\\b is not supported"),
    ("\\B", 1, "\\B is not supported"),
    ("\\G", 1, "\\G is not supported"),
    ("\\R", 1, "\\R is not supported"),
    ("\\X", 1, "\\X is not supported"),
    ("\\N{LATIN SMALL LETTER A}", 1, "\\N is not supported"),
    ("\\cA", 1, "\\c is not supported"),
    ("a\\y", 2, "\\y is no escape here"),
    ("\\E", 1, "\\E is no escape here"),
    ("[\\b]", 2, "\\b is not supported"),
    ("[\\A]", 2, "\\A is no escape here"),
    ("[\\1]", 2, "\\1 is no escape here"),
    ("\\p{L}", 1, "a property that is not supported"),
    ("\\pL", 1, "a property that is not supported"),
    ("\\p{IsAlphabetic}", 1, "a property that is not supported"),
    ("\\p{javaLowerCase}", 1, "a property that is not supported"),
    ("\\p{Alpha", 1, "a property that is not supported"),
    ("(?i)\\p{Lower}", 5, "releases of Java differ about \\p{Lower}"),
    ("(?m)^a", 3, "the flag m is not supported"),
    ("(?x)a b", 3, "the flag x is not supported"),
    ("(?u)a", 3, "the flag u is not supported"),
    ("(?U)a", 3, "the flag U is not supported"),
    ("(?d)a", 3, "the flag d is not supported"),
    ("(?i--s)a", 5, "the flag - is not supported"),
    ("(?>a)b", 1, "(?> is not supported"),
    ("(a)++", 4, "a possessive quantifier after a group"),
    ("(?#a)", 1, "not a kind of group that is supported"),
    ("(?P<a>b)", 3, "the flag P is not supported"),
    ("(?'a'b)", 1, "not a kind of group that is supported"),
    ("(a*)*", 5, "a repeated group that can be empty"),
    ("(a|){2}", 5, "a repeated group that can be empty"),
    ("(?:^|a)+b", 8, "a repeated group that can be empty"),
    ("(a+)+b", 5, "divided in more than one way"),
    ("(a|a)*b", 6, "divided in more than one way"),
    ("(\\w+\\.?)+", 9, "divided in more than one way"),
    ("(.*,)*", 6, "divided in more than one way"),
    ("(?:x(?:|))+", 11, "divided in more than one way"),
    ("(?=(?:b+)+a)", 10, "divided in more than one way"),
    ("(?=(a))", 1, "a capturing group inside of a lookaround"),
    ("(?!(a))", 1, "a capturing group inside of a lookaround"),
    ("(?<=a+)b", 1, "a lookbehind whose length is not fixed"),
    ("(?<=a|bc)d", 1, "a lookbehind whose length is not fixed"),
    ("(?<=(?:ab){2})c", 11, "a repeated group inside of a lookbehind"),
    ("\\1(a)", 1, "a reference to a group that does not end before it"),
    ("(a\\1)", 3, "a reference to a group that does not end before it"),
    ("(a)\\2", 4, "a reference to a group that does not end before it"),
    ("(a)\\k<x>", 4, "a reference to a group that does not end before it"),
    ("(a)\\kx", 4, "\\k needs <name>"),
    ("(a)\\12", 4, "a back reference before a digit"),
    ("(?i)(a)\\1", 8, "a back reference with the flag i"),
    ("(a)+\\1", 5, "a back reference to a group that is repeated"),
    ("(?:(a)\\1)+", 10, "a back reference to a group that is repeated"),
    ("(?<x>a)(?<x>b)", 13, "a second group of the name x"),
    ("(?<1>a)", 4, "not the name of a group"),
    ("(?<a_b>a)", 4, "not the name of a group"),
    ("*a", 1, "'*' has nothing to repeat"),
    ("a|+b", 3, "'+' has nothing to repeat"),
    ("(?i)*", 5, "a quantifier after what is neither"),
    ("{a}", 1, "'{' has nothing to repeat"),
    ("a**", 3, "a second quantifier"),
    ("a{2}{3}", 5, "a second quantifier"),
    ("^*a", 2, "a quantifier after what is neither"),
    ("(?=a)*", 6, "a quantifier after what is neither"),
    ("(a)\\1*", 6, "a quantifier after what is neither"),
    ("a{,2}", 2, "not a repetition"),
    ("a{b}", 2, "not a repetition"),
    ("a{2", 2, "not a repetition"),
    ("a{3,2}", 2, "its limits swapped"),
    ("a{65536}", 2, "a repetition beyond 65535"),
    ("(a", 1, "a group that is not closed"),
    ("a)", 2, "a ')' that closes nothing"),
    ("[a", 3, "a character class that is not closed"),
    ("[", 2, "a character class that is not closed"),
    ("[a-", 4, "the expression ends too early"),
    ("[z-a]", 2, "a range that does not end in a later character"),
    ("[a-\\d]", 2, "a range that does not end in a later character"),
    ("[\\v-x]", 2, "\\v before a dash"),
    ("[a&&]", 5, "&& has an empty side"),
    ("[&&a]", 2, "&& has an empty side"),
    ("[a&&&b]", 5, "&& has an empty side"),
    ("[a&&[b]c]", 8, "classes and characters mixed after &&"),
    ("a\\", 3, "the expression ends too early"),
    ("\\x4", 1, "not the hexadecimal digits of a character"),
    ("\\u00e", 1, "not the hexadecimal digits of a character"),
    ("\\x{110000}", 1, "not the hexadecimal digits of a character"),
    ("\\0", 1, "\\0 needs octal digits"),
    ("\\08", 1, "\\0 needs octal digits"),
    ("\\ud83d", 1, "half of a surrogate pair"),
    ("a\ud83d", 2, "half of a surrogate pair"),
    ("(" * 51 + ")" * 51, 51, "groups nested deeper than 50"),
]
"""Expression, the character at fault from 1, and what is said of it."""


def generated(chance: random.Random, depth: int = 0) -> str:
    """An expression of few characters and many constructs, mostly one that Java takes."""
    if depth < 3 and chance.random() < 0.25:
        return "|".join(generated(chance, depth + 1) for _ in range(chance.choice([2, 2, 3])))
    return "".join(_repeated(chance, depth) for _ in range(chance.choice([1, 1, 2, 3])))


def _repeated(chance: random.Random, depth: int) -> str:
    atom = _atom(chance, depth)
    if chance.random() < 0.6 or atom.startswith(("^", "$", "\\A", "\\Z", "\\z", "(?i)", "\\1")):
        return atom
    if atom.startswith(("(?=", "(?!", "(?<=", "(?<!")):
        return atom
    kinds = ["", "", "?"] if atom.startswith("(") else ["", "", "?", "+"]
    counts = ["*", "+", "?", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "{0}", "{1}", "{0,3}"]
    return atom + chance.choice(counts) + chance.choice(kinds)


_GROUPS = ["(", "(", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?s:"]
_CLASSES = [".", "[ab]", "[^a]", "[a-c&&[^b]]", "\\w", "\\W", "\\d", "[\\w-b]", "[a[,]]", "\\s"]
_REST = ["^", "$", "\\A", "\\Z", "\\z", "\\1", "(?i)", "\\Qa.\\E", "\\\\", "="]


def _atom(chance: random.Random, depth: int) -> str:
    kind = chance.random()
    if depth < 4 and kind < 0.35:
        return chance.choice(_GROUPS) + generated(chance, depth + 1) + ")"
    if kind < 0.5:
        return chance.choice(_CLASSES)
    return chance.choice(_REST) if kind < 0.6 else chance.choice("aabcA,")


def generated_subject(chance: random.Random) -> str:
    """A text in which such expressions find something."""
    chars = "aaabbc,=AB\\\n\r" + ("\u00e9\U0001f600" if chance.random() < 0.1 else "")
    return "".join(chance.choices(chars, k=chance.randint(0, 8)))
