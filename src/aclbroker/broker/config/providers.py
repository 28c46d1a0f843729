"""Config providers (KIP-297): values that stand in a file, a directory or the environment.

    config.providers=file
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    ssl.keystore.password=${file:/run/secrets/broker.properties:keystore.password}

What replaces a reference, and the providers' parameters, are as in Kafka's ConfigTransformer and
its three providers. Stricter than there: a reference that stands for nothing stops the start, where
Kafka takes the text of the reference as the value. No message holds what a reference stands for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import javaproperties

from aclbroker.broker.config.properties import display_name, trimmed
from aclbroker.broker.config.setting import Setting

Provider = Callable[[str, str], str]
"""Returns what a path ("" if there is none) and a key stand for; raises `ProviderError`."""

_PREFIX: Final = "config.providers"
_CLASSES: Final = "org.apache.kafka.common.config.provider."
# Kafka's: the first colon ends the provider's name, the next one, if there is one, the path.
_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


class ProviderError(ValueError):
    """A provider that cannot be used, or a reference that stands for nothing."""


def resolved(settings: Mapping[str, Setting], problems: list[str]) -> dict[str, Setting]:
    """The settings with what the references in their values stand for.

    What is wrong is added to the problems.
    """
    names = settings[_PREFIX].value if _PREFIX in settings else ""
    providers = {
        name: _provider(settings, name) for name in filter(None, re.split(r"\s*,\s*", names))
    }
    found = {}
    for name, setting in settings.items():
        try:
            found[name] = _replaced(setting, providers)
        except ProviderError as error:
            problems.append(f"{setting.origin}: {display_name(name)}: {error}")
    return found


def _replaced(setting: Setting, providers: Mapping[str, Provider]) -> Setting:
    def value_of(reference: re.Match[str]) -> str:
        provider = providers.get(reference[1])
        if provider is None:
            return reference[0]
        try:
            return provider(reference[2] or "", reference[3])
        except ProviderError as error:
            raise ProviderError(f"{reference[0]} stands for nothing: {error}") from None

    value = _REFERENCE.sub(value_of, setting.value)
    if value == setting.value:
        return setting
    value = trimmed(value, setting.origin, setting.name)
    return replace(setting, value=value, written=setting.value)


def _provider(settings: Mapping[str, Setting], name: str) -> Provider:
    """The provider of a name; one that cannot be used refuses every reference, as it is asked."""
    prefix = f"{_PREFIX}.{name}."
    given = settings[f"{prefix}class"].value if f"{prefix}class" in settings else ""
    parameters = {
        key.removeprefix(f"{prefix}param."): each.value
        for key, each in settings.items()
        if key.startswith(f"{prefix}param.")
    }
    try:
        if given not in _MAKERS:
            raise ProviderError(f"class={given!r} is not supported; allowed: {', '.join(_MAKERS)}")
        return _MAKERS[given](parameters)
    except ProviderError as error:
        problem = f"{prefix}{error}"

    def refuse(path: str, key: str) -> str:
        raise ProviderError(problem)

    return refuse


def _file_provider(parameters: Mapping[str, str]) -> Provider:
    check = _path_check(parameters)
    read = cache(_properties)

    def value(path: str, key: str) -> str:
        check(path)
        values = read(path)
        if key not in values:
            raise ProviderError(f"{path} has no such key")
        return values[key]

    return value


def _directory_provider(parameters: Mapping[str, str]) -> Provider:
    check = _path_check(parameters)

    def value(path: str, key: str) -> str:
        check(path)
        if "/" in key or not (Path(path) / key).is_file():
            raise ProviderError(f"{path} has no file of that name")
        return _text(str(Path(path) / key))

    return value


def _environment_provider(parameters: Mapping[str, str]) -> Provider:
    # Imported where somebody uses it: other brokers start sooner without it.
    from aclbroker.broker.auth.mapping.java_regex import JavaRegex, RegexError, UndecidableError

    pattern = parameters.get("allowlist.pattern", "")
    try:
        allowed = JavaRegex(pattern) if pattern else None
    except RegexError as error:
        raise ProviderError(f"param.allowlist.pattern: {error}") from None

    def value(path: str, key: str) -> str:
        if path:
            raise ProviderError("a variable of the environment has no path; write ${env:NAME}")
        try:
            hidden = allowed is not None and not allowed.matches(key)
        except UndecidableError as error:
            raise ProviderError(f"allowlist.pattern: {error}") from None
        if hidden:
            raise ProviderError("allowlist.pattern does not match its name")
        if key not in os.environ:
            raise ProviderError("the environment has no such variable")
        return os.environ[key]

    return value


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, str]], Provider]]] = {
    f"{_CLASSES}FileConfigProvider": _file_provider,
    f"{_CLASSES}DirectoryConfigProvider": _directory_provider,
    f"{_CLASSES}EnvVarConfigProvider": _environment_provider,
}
"""By Kafka's name of the class: makes a provider of its parameters."""


def _path_check(parameters: Mapping[str, str]) -> Callable[[str], None]:
    """What raises `ProviderError` for a path that is not below one of ``allowed.paths``."""
    allowed = [each.strip() for each in parameters.get("allowed.paths", "").split(",")]
    allowed = [os.path.normpath(each) for each in allowed if each]
    for each in allowed:
        if not os.path.isabs(each) or not os.path.exists(each):
            raise ProviderError(f"param.allowed.paths: {each} is no absolute path of what is there")

    def check(path: str) -> None:
        if not path:
            raise ProviderError("there is no path; write ${PROVIDER:PATH:KEY}")
        normal = Path(os.path.normpath(path))
        if allowed and not any(normal.is_relative_to(each) for each in allowed):
            raise ProviderError("its path is not in allowed.paths")

    return check


def _properties(path: str) -> Mapping[str, str]:
    try:
        return javaproperties.loads(_text(path))
    except javaproperties.InvalidUEscapeError:
        raise ProviderError(f"{path} is no properties file") from None


def _text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode()
    except OSError as error:
        raise ProviderError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ProviderError(f"{path} is not UTF-8") from None
