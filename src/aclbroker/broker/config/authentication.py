"""Reads how clients of a listener authenticate: the settings of each SASL mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from aclbroker.broker.auth.sasl.jaas import JaasError, parse_jaas, parse_plain_users
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.kerberos import read_kerberos
from aclbroker.broker.config.oauthbearer import read_oauthbearer
from aclbroker.broker.config.reader import Reader, listener_prefix
from aclbroker.broker.config.values import SCRAM_MECHANISMS


def read_mechanisms(reader: Reader, name: str) -> Mapping[str, Any]:
    """The mechanisms that a SASL listener offers, in their order, with the settings of each."""
    asked = reader.value("sasl.enabled.mechanisms", name)
    offered = [mechanism for mechanism in asked if mechanism in _READERS]
    if not offered:
        reader.refuse(
            "sasl.enabled.mechanisms",
            f"listener {name} has no mechanism that is supported yet",
            ", ".join(_READERS),
            name,
        )
    elif len(offered) < len(asked):
        missing = ", ".join(item for item in asked if item not in _READERS)
        origin = reader.setting("sasl.enabled.mechanisms", name).origin
        reader.report.warn(
            f"{origin}: listener {name} offers {', '.join(offered)} only; no support of {missing}"
        )
    return {mechanism: _READERS[mechanism](reader, name) for mechanism in offered}


def max_reauth_ms(reader: Reader, name: str, mechanism: str) -> int:
    """After how many milliseconds a session must authenticate again; 0 is never."""
    found: int = reader.mechanism_value(mechanism, "connections.max.reauth.ms", name)
    return found


def read_mapping_rules(reader: Reader, setting: str, name: str, *, needed: bool) -> Any:
    """The parsed rules that map names to principals; None if they are not needed and nobody set
    them.
    """
    if not needed and not reader.given(setting, name):
        return None
    found = reader.setting(setting, name)
    if not found.value:
        reader.report.warn(f"{found.origin}: {found.name} is empty, so nobody has a principal")
    return reader.value(setting, name)


def _plain_users(reader: Reader, name: str) -> Mapping[str, str]:
    own_name = f"{listener_prefix(name)}plain.sasl.jaas.config"
    if not reader.given("plain.sasl.jaas.config", name):
        reader.report.problems.append(
            f"{reader.setting('listeners').origin}: listener {name} needs {own_name}; "
            f"allowed: {DEFINITIONS['plain.sasl.jaas.config'].type.allowed}"
        )
        return {}
    setting = reader.setting("plain.sasl.jaas.config", name)
    try:
        users = parse_plain_users(setting.value)
    except JaasError as error:
        reader.refuse("plain.sasl.jaas.config", str(error), listener=name)
        return {}
    if not users:
        reader.report.warn(
            f"{setting.origin}: {own_name} has no user_NAME entry, so nobody can log in"
        )
    return users


def _scram(mechanism: str, reader: Reader, name: str) -> None:
    """Check the settings of SCRAM; its users are in the store."""
    reader.value(f"{mechanism.lower()}.sasl.server.callback.handler.class", name)
    setting_name = f"{mechanism.lower()}.sasl.jaas.config"
    if not reader.given(setting_name, name):
        return
    setting = reader.setting(setting_name, name)
    try:
        options = parse_jaas(setting.value).options
    except JaasError as error:
        reader.refuse(setting_name, str(error), listener=name)
        return
    if any(option.startswith("user_") for option in options):
        reader.report.warn(
            f"{setting.origin}: {setting.name}: user_NAME has no effect, as in Kafka; users of "
            f"{mechanism} are added with kafka-configs.sh"
        )


_READERS: Final[Mapping[str, Callable[[Reader, str], Any]]] = {
    "PLAIN": _plain_users,
    **{mechanism: partial(_scram, mechanism) for mechanism in SCRAM_MECHANISMS},
    "OAUTHBEARER": read_oauthbearer,
    "GSSAPI": read_kerberos,
}
"""By mechanism that is supported: the function that reads its settings."""
