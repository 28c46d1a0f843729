"""The settings with which clients log in, under the names that each client library has for them."""

from __future__ import annotations

from typing import Any, Final

_PROTOCOL: Final = "SASL_PLAINTEXT"
_MECHANISM: Final = "PLAIN"
_IN_JAAS: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def _librdkafka(servers: str, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": _PROTOCOL,
        "sasl.mechanisms": _MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
    }


def _kafka_python(servers: str, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": servers.split(","),
        "security_protocol": _PROTOCOL,
        "sasl_mechanism": _MECHANISM,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def _java(servers: str, user: str, password: str) -> dict[str, Any]:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    options = f'username="{user.translate(_IN_JAAS)}" password="{password.translate(_IN_JAAS)}"'
    return {
        "bootstrap.servers": servers,
        "security.protocol": _PROTOCOL,
        "sasl.mechanism": _MECHANISM,
        "sasl.jaas.config": f"{login} required {options};",
    }


_FORMS: Final = {
    "confluent": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _kafka_python,
    "java": _java,
}

CLIENTS: Final = tuple(_FORMS)
"""The client libraries whose names of settings are known."""


def client_config(client: str, servers: str, user: str, password: str) -> dict[str, Any]:
    """Return the settings of a client that logs in with SASL/PLAIN.

    ``servers`` are addresses separated by commas. Raises ValueError for a client that is not one of
    `CLIENTS`.
    """
    form = _FORMS.get(client)
    if form is None:
        raise ValueError(f"client {client!r} is not known; it must be one of {', '.join(CLIENTS)}")
    return form(servers, user, password)
