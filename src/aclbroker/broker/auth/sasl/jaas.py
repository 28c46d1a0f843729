r"""Parses the JAAS text of a `sasl.jaas.config` setting: one login module with its options.

    LoginModuleClass required|requisite|sufficient|optional key="value" key='value' ... ;

The text is split as java.io.StreamTokenizer does it in Kafka's JaasConfig: quotes of both kinds,
backslash escapes (\n, \t, octal, ...) inside them, comments from a slash on. Stricter than there:
a quote must be closed on its line. Errors give a position and never any of the text, which holds
passwords.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

PLAIN_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER_PREFIX = "user_"
_CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")

# StreamTokenizer takes every character from U+00A0 on as a letter, and a lone slash
# as the start of a comment that has at least one character, be it the end of the line.
_TOKEN = re.compile(
    r"""
    (?P<blank> [\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /[^*]?[^\r\n]* )
  | (?P<number> -?\.?[0-9][0-9.]* )
  | (?P<word> [A-Za-z_$\xa0-\U0010ffff] [-A-Za-z0-9._$\xa0-\U0010ffff]* )
  | (?P<quoted> "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*' )
  | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is no JAAS configuration of one login module, or not of the one that is wanted."""


class JaasEntry(NamedTuple):
    """A login module's class, its control flag in lower case, and its options."""

    login_module: str
    control_flag: str
    options: dict[str, str]


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse_plain_users(text: str) -> dict[str, str]:
    """Passwords by user name, from the `user_NAME` options of Kafka's PlainLoginModule.

    Raises JaasError if the text is malformed or names another login module.
    """
    entry = parse_jaas(text)
    if entry.login_module != PLAIN_LOGIN_MODULE:
        raise JaasError("the login module is not PlainLoginModule")
    return {
        key.removeprefix(_USER_PREFIX): value
        for key, value in entry.options.items()
        if key.startswith(_USER_PREFIX)
    }


def parse_jaas(text: str) -> JaasEntry:
    """The one entry in the text; of an option that is there twice the last value counts.

    Raises JaasError.
    """
    tokens = _tokens(text)
    login_module = _expect_text(next(tokens), "a login module")
    flag = next(tokens)
    control_flag = _expect_text(flag, "a control flag").lower()
    if control_flag not in _CONTROL_FLAGS:
        raise _error(f"one of {', '.join(_CONTROL_FLAGS)}", flag)
    options: dict[str, str] = {}
    while (token := next(tokens)).text != ";" or token.kind != "mark":
        key = _expect_text(token, "an option or ';'")
        equals = next(tokens)
        if equals.kind != "mark" or equals.text != "=":
            raise _error("'='", equals)
        options[key] = _expect_text(next(tokens), "a value, in quotes unless it is a plain word")
    rest = next(tokens)
    if rest.kind != "end":
        raise _error("nothing more, as there must be one login module", rest)
    return JaasEntry(login_module, control_flag, options)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        position = match.start() + 1
        if kind == "quoted":
            yield _Token(kind, _ESCAPE.sub(_unescape, match[0][1:-1]), position)
        elif kind == "mark" and match[0] in "\"'":
            raise JaasError(f"at character {position}: the quote is not closed")
        elif kind != "blank":
            yield _Token(kind, match[0], position)
    end = _Token("end", "", len(text) + 1)
    while True:
        yield end


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _ESCAPED.get(escaped, escaped)


def _expect_text(token: _Token, wanted: str) -> str:
    if token.kind not in ("word", "quoted"):
        raise _error(wanted, token)
    return token.text


def _error(wanted: str, token: _Token) -> JaasError:
    place = "at the end" if token.kind == "end" else f"at character {token.position}"
    return JaasError(f"{place}: expected {wanted}")
