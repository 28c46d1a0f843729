"""Reads the settings of GSSAPI, that is Kerberos, on one listener."""

from __future__ import annotations

from typing import Any

from aclbroker.broker.auth.sasl.gssapi_server import GssapiError, acceptor_credentials
from aclbroker.broker.auth.sasl.jaas import JaasError, parse_jaas
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.reader import Reader, listener_prefix

_LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
_JAAS = "gssapi.sasl.jaas.config"


def read_kerberos(reader: Reader, name: str) -> Any:
    """The broker's credentials; None if there are problems, which are in the report."""
    reader.value("gssapi.sasl.server.callback.handler.class", name)
    if not reader.given(_JAAS, name):
        _miss_jaas(reader, name)
        return None
    try:
        principal, keytab = _key(reader.setting(_JAAS, name).value)
        _warn_of_other_name(reader, name, principal)
        return acceptor_credentials(principal, keytab)
    except (JaasError, GssapiError) as error:
        reader.refuse(_JAAS, str(error), listener=name)
        return None


def _key(text: str) -> tuple[str, str | None]:
    """The principal and the keytab in a JAAS text; raises JaasError."""
    entry = parse_jaas(text)
    if entry.login_module != _LOGIN_MODULE:
        raise JaasError("the login module is not Krb5LoginModule")
    if entry.options.get("useKeyTab", "").lower() != "true":
        raise JaasError("useKeyTab is not true: nothing but a keytab has the broker's keys")
    principal = entry.options.get("principal", "")
    if principal in ("", "*"):
        raise JaasError("there is no principal")
    return principal, entry.options.get("keyTab")


def _warn_of_other_name(reader: Reader, name: str, principal: str) -> None:
    service = reader.value("sasl.kerberos.service.name", name)
    primary = principal.partition("@")[0].partition("/")[0]
    if service is not None and service != primary:
        setting = reader.setting("sasl.kerberos.service.name", name)
        reader.report.warn(
            f"{setting.origin}: {setting.name}={service!r} is not the first part of the principal "
            f"of listener {name}, which is {primary!r}: clients that use it get no ticket for it"
        )


def _miss_jaas(reader: Reader, name: str) -> None:
    hint = (
        ""
        if reader.given("sasl.enabled.mechanisms", name)
        else ", because sasl.enabled.mechanisms is GSSAPI unless it is set"
    )
    reader.report.problems.append(
        f"{reader.setting('listeners').origin}: listener {name} needs "
        f"{listener_prefix(name)}{_JAAS}{hint}; allowed: {DEFINITIONS[_JAAS].type.allowed}"
    )
