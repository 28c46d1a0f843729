"""Reads the TLS settings of a listener, and loads its files so that a bad one shows at start."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.reader import Reader, listener_prefix

WITH_TLS: Final = ("SSL", "SASL_SSL")
_CLIENT_AUTH: Final = "ssl.client.auth"
# Reading these reports values of Kafka that would change whom Java trusts.
_CHECKED: Final = ("ssl.engine.factory.class", "ssl.trustmanager.algorithm", "ssl.protocol")


def read_tls(reader: Reader, name: str, protocol: str) -> TlsSettings | None:
    """The TLS settings of a listener, None for one without TLS."""
    if protocol not in WITH_TLS:
        _check_without_tls(reader, name)
        return None
    for checked in _CHECKED:
        reader.value(checked, name)
    values = {
        field.name: reader.value(f"ssl.{field.name.replace('_', '.')}", name)
        for field in fields(TlsSettings)
    }
    values["client_auth"] = _client_auth(reader, name, protocol)
    settings = TlsSettings(**values)
    _try_out(reader, name, settings)
    return settings


def warn_of_client_auth(reader: Reader, protocols: list[str]) -> None:
    """Warn that client certificates are asked for and no listener can have any."""
    setting = reader.setting(_CLIENT_AUTH)
    if reader.value(_CLIENT_AUTH) != "none" and not any(each in WITH_TLS for each in protocols):
        reader.report.warn(
            f"{setting.origin}: {setting.name}={setting.value!r} has no effect, because no "
            "listener has SSL"
        )


def _try_out(reader: Reader, name: str, settings: TlsSettings) -> None:
    # Imported where a listener needs it: it costs time at start, and memory.
    from aclbroker.broker.auth.tls.context import server_tls

    try:
        warnings = server_tls(settings).warnings
    except TlsError as error:
        reader.refuse(error.setting, f"listener {name}: {error}", listener=name)
        return
    for warning in warnings:
        reader.report.warn(f"listener {name}: {warning}")


def _client_auth(reader: Reader, name: str, protocol: str) -> str:
    asked: str = reader.value(_CLIENT_AUTH, name)
    # As in Kafka's ChannelBuilders the broker's own setting is for SSL listeners alone.
    if protocol == "SSL" or _is_own(reader, name, _CLIENT_AUTH) or asked == "none":
        return asked
    setting = reader.setting(_CLIENT_AUTH)
    reader.report.warn(
        f"{setting.origin}: {setting.name}={setting.value!r} has no effect on the SASL_SSL "
        f"listener {name}, as in Kafka; write {listener_prefix(name)}{_CLIENT_AUTH}"
    )
    return "none"


def _check_without_tls(reader: Reader, name: str) -> None:
    if reader.value(_CLIENT_AUTH, name) == "required" and _is_own(reader, name, _CLIENT_AUTH):
        reader.refuse(_CLIENT_AUTH, f"listener {name} has no SSL", "none", name)
    for setting in DEFINITIONS:
        if setting.startswith("ssl.") and _is_own(reader, name, setting):
            own = reader.setting(setting, name)
            reader.report.warn(
                f"{own.origin}: {own.name}: no effect, because listener {name} has no SSL"
            )


def _is_own(reader: Reader, name: str, setting: str) -> bool:
    return reader.setting(setting, name).name != setting
