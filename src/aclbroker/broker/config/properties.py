"""Reads a Java properties file and keeps, beside each value, the place where it was written.

The rules are those of java.util.Properties as Kafka uses it: bytes are ISO-8859-1, and of two
lines with one name the last counts.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import javaproperties

from aclbroker.acl.files.text_files import TextFileError, properties_of
from aclbroker.broker.config.model import ConfigError
from aclbroker.broker.config.setting import Setting

_LINE_END = re.compile(r"\r\n|\r|\n")
_PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)
# String.trim() of Java, which ConfigDef applies to every value.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))


def display_name(name: str) -> str:
    """The name as it may be shown.

    A value that was continued on a new line without a backslash is read as a name, so whatever
    does not look like a name may be a part of a password.
    """
    return repr(name) if _PLAIN_NAME.fullmatch(name) else "(not the name of a setting)"


def read_properties(
    path: str, *, may_be_empty: bool = False
) -> tuple[dict[str, Setting], list[str]]:
    """The settings of the file and warnings about it.

    Raises ConfigError if the file cannot be read, is no text, has no setting (unless it may be
    empty), or holds an escape that is none.
    """
    try:
        text = properties_of(Path(path).read_bytes(), path)
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror or error}",)) from None
    except TextFileError as error:
        raise ConfigError((str(error),)) from None
    settings: dict[str, Setting] = {}
    warnings: list[str] = []
    for line, item in _numbered_items(path, text):
        origin = f"{path}:{line}"
        if item.key in settings:
            warnings.append(
                f"{origin}: {display_name(item.key)} was already set at "
                f"{settings[item.key].origin}; the last one counts"
            )
        if not item.source.isascii():
            warnings.append(
                f"{origin}: {display_name(item.key)} holds bytes beyond ASCII, which are read as "
                "ISO-8859-1, as Java does; write other characters as \\uXXXX"
            )
        settings[item.key] = Setting(item.key, trimmed(item.value, origin, item.key), origin)
    if not settings and not may_be_empty:
        raise ConfigError((f"{path}: is empty; allowed: a file with a setting, such as listeners",))
    return settings, warnings


def override_settings(overrides: Mapping[str, str]) -> dict[str, Setting]:
    """The settings given on the command line, which win over those of the file."""
    origin = "--override"
    return {
        name: Setting(name, trimmed(value, origin, name), origin)
        for name, value in overrides.items()
    }


def _numbered_items(path: str, text: str) -> Iterator[tuple[int, javaproperties.KeyValue]]:
    line = 1
    items = javaproperties.parse(text)
    while True:
        try:
            item = next(items, None)
        except javaproperties.InvalidUEscapeError:
            raise ConfigError(
                (f"{path}:{line}: a \\u is not followed by four hexadecimal digits",)
            ) from None
        if item is None:
            return
        if isinstance(item, javaproperties.KeyValue):
            yield line, item
        line += len(_LINE_END.findall(item.source))


def trimmed(value: str, origin: str, name: str) -> str:
    """The value without blanks around it; raises ConfigError if it is no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            (f"{origin}: {display_name(name)} holds half of a surrogate pair",)
        ) from None
    return value.strip(_JAVA_BLANKS)
