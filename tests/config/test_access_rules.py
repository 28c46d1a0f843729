"""Which providers of ACLs decide together, by Confluent's settings."""

from __future__ import annotations

import pytest

from aclbroker.broker.config.access_rules import access_rules
from tests.config.conftest import LoadError, LoadText

AUTHORIZER = (
    "authorizer.class.name=io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer"
)
PROVIDERS = "confluent.authorizer.access.rule.providers"
MIGRATES = "confluent.authorizer.migrate.acls.from.cluster"
TOPIC = "kafka://127.0.0.1:9092/acls"
CENTRAL = f"aclbroker.provider.confluent.store={TOPIC}"
ZOOKEEPER = "zookeeper.connect=127.0.0.1:2181/kafka"
KRAFT = "aclbroker.provider.kraft.store=kafka+acls://127.0.0.1:9092"
START = ("listeners=PLAINTEXT://127.0.0.1:9092", "super.users=User:admin")


def test_each_provider_has_its_store_and_the_clusters_own_is_managed(load_text: LoadText) -> None:
    config = load_text(
        *START, AUTHORIZER, f"{PROVIDERS}=CONFLUENT, ZK_ACL", f"{MIGRATES}=true", CENTRAL, ZOOKEEPER
    )
    rules = access_rules(config.properties)
    assert rules is not None
    assert [(each.name, each.store) for each in rules.providers] == [
        ("CONFLUENT", TOPIC),
        ("ZK_ACL", "zookeeper://127.0.0.1:2181/kafka"),
    ]
    assert rules.managed.name == "ZK_ACL"
    assert rules.migrates
    # Users and tokens stay where they were.
    assert config.store == "zookeeper://127.0.0.1:2181/kafka"
    assert not [each for each in config.warnings if "no effect" in each]


@pytest.mark.parametrize(
    ("given", "names", "stores", "records"),
    [
        ((ZOOKEEPER,), ["ZK_ACL"], ["zookeeper://127.0.0.1:2181/kafka"], None),
        ((f"{PROVIDERS}=CONFLUENT", CENTRAL), ["CONFLUENT"], [TOPIC], TOPIC),
        (
            (f"{PROVIDERS}=CONFLUENT", CENTRAL, ZOOKEEPER),
            ["CONFLUENT"],
            [TOPIC],
            "zookeeper://127.0.0.1:2181/kafka",
        ),
        ((f"{PROVIDERS}=CONFLUENT", "aclbroker.store=memory:"), ["CONFLUENT"], ["memory:"], None),
        (
            (f"{PROVIDERS}=CONFLUENT",),
            ["CONFLUENT"],
            ["sqlite:///aclbroker.db"],
            None,
        ),
        (
            (f"{PROVIDERS}=KRAFT_ACL,CONFLUENT", KRAFT, CENTRAL),
            ["KRAFT_ACL", "CONFLUENT"],
            ["kafka+acls://127.0.0.1:9092", TOPIC],
            TOPIC,
        ),
        (
            (f"{PROVIDERS}=KRAFT_ACL,CONFLUENT", "aclbroker.store=sqlite:///a.db", CENTRAL),
            ["KRAFT_ACL", "CONFLUENT"],
            ["sqlite:///a.db", TOPIC],
            "sqlite:///a.db",
        ),
    ],
)
def test_what_is_not_said_follows_from_the_rest(
    load_text: LoadText,
    given: tuple[str, ...],
    names: list[str],
    stores: list[str],
    records: str | None,
) -> None:
    config = load_text(*START, AUTHORIZER, *given)
    rules = access_rules(config.properties)
    assert rules is not None
    assert [each.name for each in rules.providers] == names
    assert [each.store for each in rules.providers] == stores
    assert config.store == (records or stores[0])


def test_stores_have_clients_of_their_own(load_text: LoadText) -> None:
    config = load_text(
        *START,
        AUTHORIZER,
        f"{PROVIDERS}=CONFLUENT,KRAFT_ACL",
        CENTRAL,
        KRAFT,
        "aclbroker.store.client.config=own.properties",
        "aclbroker.provider.kraft.client.config=kraft.properties",
    )
    rules = access_rules(config.properties)
    assert rules is not None
    clients = [each.properties["aclbroker.store.client.config"] for each in rules.providers]
    assert clients == ["own.properties", "kraft.properties"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((f"{PROVIDERS}=CONFLUENT,LDAP", CENTRAL), "'LDAP' is unknown; allowed: one or two of CON"),
        ((f"{PROVIDERS}=",), "there is none; allowed: one or two of CONFLUENT, ZK_ACL, KRAFT_ACL"),
        ((f"{PROVIDERS}=CONFLUENT,CONFLUENT", CENTRAL), "one is there twice"),
        (
            (f"{PROVIDERS}=ZK_ACL,KRAFT_ACL", ZOOKEEPER, KRAFT),
            "a cluster has its own ACLs in one place",
        ),
        ((f"{PROVIDERS}=CONFLUENT,ZK_ACL", CENTRAL), "ZK_ACL needs zookeeper.connect"),
        ((), "ZK_ACL needs zookeeper.connect"),
        (
            (f"{PROVIDERS}=CONFLUENT,KRAFT_ACL", CENTRAL),
            "KRAFT_ACL needs aclbroker.provider.kraft.store",
        ),
        (
            (f"{PROVIDERS}=CONFLUENT,ZK_ACL", ZOOKEEPER),
            "both would be in zookeeper://127.0.0.1:2181/kafka",
        ),
        ((f"{PROVIDERS}=CONFLUENT", CENTRAL, f"{MIGRATES}=true"), "there is nothing to copy"),
        ((ZOOKEEPER, f"{MIGRATES}=yes"), "'yes': not a boolean"),
        ((ZOOKEEPER, "aclbroker.provider.kraft.store=kafka+acls://host"), "not a store"),
        ((ZOOKEEPER, "aclbroker.provider.confluent.store=kafka+acls://a:1"), "not a store"),
        ((ZOOKEEPER, "aclbroker.provider.kraft.interval.ms=1"), "an integer from 10"),
    ],
)
def test_what_cannot_be_is_told(load_error: LoadError, given: tuple[str, ...], said: str) -> None:
    assert any(said in each for each in load_error(*START, AUTHORIZER, *given).problems)


def test_without_confluents_authorizer_they_have_no_effect_and_a_warning_says_so(
    load_text: LoadText,
) -> None:
    config = load_text(*START, f"{PROVIDERS}=CONFLUENT", f"{MIGRATES}=true")
    assert access_rules(config.properties) is None
    told = [each for each in config.warnings if "ConfluentServerAuthorizer" in each]
    assert [name in each for name, each in zip((PROVIDERS, MIGRATES), told, strict=True)] == [
        True,
        True,
    ]
