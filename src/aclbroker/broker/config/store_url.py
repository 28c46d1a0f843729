"""Which store a configuration names: by a URL, or by being that of a Kafka with ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

ZOOKEEPER: Final = "zookeeper://"
_KAFKA: Final = "kafka://"
ZOOKEEPER_AUTHORIZERS: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""The classes of Kafka that keep ACLs in ZooKeeper; it has had none since 4.0."""

CONFLUENT_AUTHORIZER: Final = "io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer"
"""The class of Confluent that decides by the rules of several providers (`access_rules`)."""

DEFAULT_STORE: Final = "sqlite:///aclbroker.db"


def store_url(properties: Mapping[str, str]) -> str:
    """Return the URL of the store that a broker's properties name.

    That is ``aclbroker.store`` if it is given. If not, an authorizer of Kafka or Confluent that
    keeps ACLs in ZooKeeper has them where `zookeeper_url` says. Confluent's has all else where the
    centralised ACLs are, if there is no ZooKeeper.
    """
    given = properties.get("aclbroker.store")
    if given is not None:
        return given.strip()
    name = properties.get("authorizer.class.name", "").strip()
    url = ""
    if name in (*ZOOKEEPER_AUTHORIZERS, CONFLUENT_AUTHORIZER):
        url = zookeeper_url(properties)
    if name == CONFLUENT_AUTHORIZER and not url:
        url = properties.get("aclbroker.provider.confluent.store", "").strip()
    return url or DEFAULT_STORE


def topics_of(urls: Iterable[str]) -> frozenset[str]:
    """Return the topics that the URLs of stores name."""
    return frozenset(each.rpartition("/")[2] for each in urls if each.startswith(_KAFKA))


def zookeeper_url(properties: Mapping[str, str]) -> str:
    """Return the URL of the ZooKeeper with a cluster's ACLs, "" if none is named.

    It is at ``authorizer.zookeeper.url``, else at ``zookeeper.connect``.
    """
    connect = properties.get("authorizer.zookeeper.url") or properties.get("zookeeper.connect", "")
    return f"{ZOOKEEPER}{connect.strip()}" if connect.strip() else ""
