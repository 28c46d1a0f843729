"""As whom a client logs in, as far as its settings tell: a cluster does not say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aclbroker.broker.auth.sasl.jaas import JaasEntry
    from aclbroker.broker.client.settings import ClientSettings

ANONYMOUS: Final = "User:ANONYMOUS"
"""Who has not logged in."""


def brings_groups(settings: ClientSettings) -> bool:
    """Tell whether the login may have groups of an access token, which no file names.

    A delegation token has those of its owner.
    """
    if settings.jaas is None:
        return False
    return settings.mechanism == "OAUTHBEARER" or _is_by_token(settings.jaas)


def _is_by_token(jaas: JaasEntry) -> bool:
    return jaas.options.get("tokenauth", "").lower() == "true"


def own_principal(settings: ClientSettings) -> str | None:
    """Return the principal that the settings log in as, None if they do not tell.

    It is the one of Kafka's default principal builder, with its default rules. A delegation token,
    an access token and a certificate stand for somebody whom they do not name here.
    """
    if not settings.protocol.startswith("SASL_"):
        return ANONYMOUS if settings.protocol == "PLAINTEXT" else None
    if settings.jaas is None or _is_by_token(settings.jaas):
        return None
    options = settings.jaas.options
    if settings.mechanism == "GSSAPI":
        name = options.get("principal", "").partition("@")[0].partition("/")[0]
    else:
        name = options.get("username", "")
    return f"User:{name}" if name else None
