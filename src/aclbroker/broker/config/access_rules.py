"""Which stores decide together, by the settings of Confluent's authorizer (access rule providers).

ZK_ACL and KRAFT_ACL are a cluster's own ACLs, CONFLUENT the centralised ones. Confluent documents
the names under "Authorization using centralized ACLs" and "Configure Confluent Server Authorizer".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.acl.settings import parse_boolean
from aclbroker.broker.config.store_url import CONFLUENT_AUTHORIZER, store_url, zookeeper_url

PROVIDERS: Final = "confluent.authorizer.access.rule.providers"
MIGRATES: Final = "confluent.authorizer.migrate.acls.from.cluster"
MAX_LOSS: Final = "aclbroker.migration.max.loss.percent"
ACCEPTED_LOSS: Final = "aclbroker.migration.accept.loss"
CENTRAL_STORE: Final = "aclbroker.provider.confluent.store"
CENTRAL_CLIENT: Final = "aclbroker.provider.confluent.client.config"
KRAFT_STORE: Final = "aclbroker.provider.kraft.store"
KRAFT_CLIENT: Final = "aclbroker.provider.kraft.client.config"
KRAFT_INTERVAL: Final = "aclbroker.provider.kraft.interval.ms"

CONFLUENT: Final = "CONFLUENT"
ZK_ACL: Final = "ZK_ACL"
KRAFT_ACL: Final = "KRAFT_ACL"
NAMES: Final = (CONFLUENT, ZK_ACL, KRAFT_ACL)

MAX_LOSS_PERCENT: Final = 50
"""The largest share of its ACLs that a source may lose at once, by default."""

_WHOLE: Final = 100

DEFAULT: Final = ZK_ACL
"""What Confluent's authorizer has if nothing is named."""

_STORE_CLIENT: Final = "aclbroker.store.client.config"


class AccessRuleError(ValueError):
    """A setting of providers cannot be used; ``reason`` says why and ``allowed`` what could be."""

    def __init__(self, setting: str, reason: str, allowed: str) -> None:
        super().__init__(f"{setting}: {reason}; allowed: {allowed}")
        self.setting = setting
        self.reason = reason
        self.allowed = allowed


class Provider(NamedTuple):
    """A provider, the URL of its store, and the properties with which that is opened."""

    name: str
    store: str
    properties: Mapping[str, str]


class AccessRules(NamedTuple):
    """The providers that decide together, in the order of the setting."""

    providers: tuple[Provider, ...]
    migrates: bool
    """Whether the cluster's own ACLs are copied to the centralised ones."""

    max_loss_percent: int
    """The largest share of its ACLs, in percent, that the cluster may lose unconfirmed."""

    accepted_loss: str
    """The token that confirms a larger loss; "" for none."""

    @property
    def managed(self) -> Provider:
        """Whose ACLs Kafka's requests list and change: the cluster's own as long as they count."""
        own = [each for each in self.providers if each.name != CONFLUENT]
        return own[0] if own else self.providers[0]


def access_rules(properties: Mapping[str, str]) -> AccessRules | None:
    """Return the providers of a broker's properties; None where they have no say.

    That is so unless ``authorizer.class.name`` is Confluent's. Raises `AccessRuleError`.
    """
    if properties.get("authorizer.class.name", "").strip() != CONFLUENT_AUTHORIZER:
        return None
    names = parse_providers(properties.get(PROVIDERS, DEFAULT))
    providers = tuple(_provider(name, properties) for name in names)
    if len({each.store for each in providers}) < len(providers):
        raise AccessRuleError(
            PROVIDERS,
            f"both would be in {providers[0].store}",
            f"two providers with stores of their own: see {CENTRAL_STORE}",
        )
    migrates = _is_true(properties, MIGRATES)
    if migrates and len(providers) < 2:
        raise AccessRuleError(
            MIGRATES,
            f"there is nothing to copy with {PROVIDERS}={','.join(names)}",
            f"true beside {CONFLUENT},{ZK_ACL} or {CONFLUENT},{KRAFT_ACL}",
        )
    return AccessRules(
        providers, migrates, _max_loss(properties), properties.get(ACCEPTED_LOSS, "").strip()
    )


def parse_providers(text: str) -> Sequence[str]:
    """Return the names of providers in a text. Raises `AccessRuleError`."""
    names = [each for each in re.split(r"\s*,\s*", text.strip()) if each]
    allowed = f"one or two of {', '.join(NAMES)}, separated by commas"
    if not names:
        raise AccessRuleError(PROVIDERS, "there is none", allowed)
    for name in names:
        if name not in NAMES:
            raise AccessRuleError(PROVIDERS, f"{name!r} is unknown", allowed)
    if len(set(names)) < len(names):
        raise AccessRuleError(PROVIDERS, "one is there twice", allowed)
    if {ZK_ACL, KRAFT_ACL} <= set(names):
        reason = "a cluster has its own ACLs in one place"
        raise AccessRuleError(PROVIDERS, reason, f"{CONFLUENT} with {ZK_ACL} or {KRAFT_ACL}")
    return names


def _provider(name: str, properties: Mapping[str, str]) -> Provider:
    if name == ZK_ACL:
        url = zookeeper_url(properties)
        if not url:
            raise AccessRuleError(
                PROVIDERS,
                f"{ZK_ACL} needs zookeeper.connect",
                f"{ZK_ACL} with zookeeper.connect=HOST:PORT/CHROOT beside it, or {CONFLUENT}, or "
                f"{KRAFT_ACL} with {KRAFT_STORE}",
            )
        return Provider(name, url, properties)
    if name == CONFLUENT:
        store = properties.get(CENTRAL_STORE, "").strip() or store_url(properties)
        return Provider(name, store, _with_client(properties, CENTRAL_CLIENT))
    own = properties.get(KRAFT_STORE, "") or properties.get("aclbroker.store", "")
    if not own.strip():
        raise AccessRuleError(
            PROVIDERS,
            f"{KRAFT_ACL} needs {KRAFT_STORE}",
            f"{KRAFT_ACL} with {KRAFT_STORE}=kafka+acls://HOST:PORT beside it",
        )
    return Provider(name, own.strip(), _with_client(properties, KRAFT_CLIENT))


def _with_client(properties: Mapping[str, str], setting: str) -> Mapping[str, str]:
    """The properties with which a store is opened that has settings of a client of its own."""
    client = properties.get(setting, "").strip()
    return {**properties, _STORE_CLIENT: client} if client else properties


def _max_loss(properties: Mapping[str, str]) -> int:
    text = properties.get(MAX_LOSS, "").strip() or str(MAX_LOSS_PERCENT)
    if not text.isdecimal() or int(text) > _WHOLE:
        raise AccessRuleError(MAX_LOSS, f"{text!r} is no percentage", "an integer from 0 to 100")
    return int(text)


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    text = properties.get(name, "false").strip()
    try:
        return parse_boolean(text)
    except ValueError as error:
        raise AccessRuleError(name, f"{text!r}: {error}", "true, false") from None
