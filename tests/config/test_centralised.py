"""The settings of the HTTP API, and of the further clusters that one server holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.settings import (
    acl_limit,
    authorizer_settings,
    reads_latest,
    stale_settings,
)
from aclbroker.broker.config import shown_settings
from tests.config.conftest import JAAS, LoadError, LoadText
from tests.support.certificates import Authority

SASL = ("listeners=SASL_PLAINTEXT://127.0.0.1:9092,B://127.0.0.1:9093", JAAS)
LISTENERS = (
    *SASL,
    "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
    JAAS.replace(".sasl_plaintext.", ".b."),
    "sasl.enabled.mechanisms=PLAIN",
)
API = "confluent.metadata.server.listeners"


def test_a_cluster_has_what_its_settings_say_and_nothing_of_the_servers_own(
    load_text: LoadText,
) -> None:
    config = load_text(
        *LISTENERS,
        "super.users=User:admin",
        "broker.users=User:broker",
        "aclbroker.acl.limit=7",
        "allow.everyone.if.no.acl.found=true",
        "aclbroker.acl.host.cidr=true",
        "aclbroker.store.stale=deny",
        "aclbroker.store.max.lag.ms=1000",
        "aclbroker.store.read=latest",
        "aclbroker.clusters.lkc-A.store=memory:",
        "aclbroker.clusters.lkc-A.listeners=b",
        "aclbroker.clusters.lkc-A.super.users=User:a",
        "aclbroker.clusters.lkc-A.broker.users=User:b",
        "aclbroker.clusters.lkc-A.acl.limit=1000",
        "aclbroker.clusters.lkc-B.store=sqlite:///b.db",
    )
    first, second = config.clusters
    assert (first.cluster_id, first.store, first.listeners) == ("lkc-A", "memory:", ("B",))
    decides = authorizer_settings(first.properties)
    assert decides.super_users == {"User:a"}
    assert decides.broker_users == BrokerUsers(frozenset({"User:b"}), "B")
    assert not decides.allow_everyone_if_no_acl_found
    assert decides.cidr
    assert acl_limit(first.properties) == 1000
    for each in config.clusters:
        assert stale_settings(each.properties) == (1.0, True)
        assert reads_latest(each.properties)
    assert (second.cluster_id, second.listeners) == ("lkc-B", ())
    decides = authorizer_settings(second.properties)
    assert not decides.super_users
    assert not decides.broker_users.principals
    assert acl_limit(second.properties) is None
    [warning] = [each for each in config.warnings if "lkc" in each]
    assert "aclbroker.clusters.lkc-B.super.users is empty" in warning
    assert "aclbroker.clusters.lkc-A.super.users" in shown_settings(config.properties)


A = "aclbroker.clusters.A."


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([f"{A}listeners=B"], f"{A}store='': the cluster has no store"),
        ([f"{A}store=nosuch:"], f"{A}store='nosuch:': not a store"),
        ([f"{A}store=memory:", f"{A}listeners=X"], f"{A}listeners='X': 'X' is not in listeners"),
        ([f"{A}store=memory:", f"{A}super.users=alice"], "'alice' has no colon"),
        ([f"{A}store=memory:", f"{A}acl.limit=-1"], "an integer from 0"),
        ([f"{A}store=memory:", f"{A}broker.users=User:b"], "not known which listener"),
        (
            [f"{A}store=memory:", f"{A}listeners=B", f"{A}inter.broker.listener.name=X"],
            "it is not among the cluster's listeners; allowed: B",
        ),
        (
            [f"{A}store=memory:", "aclbroker.clusters.C.store=memory:", f"{A}listeners=B",
             "aclbroker.clusters.C.listeners=B"],
            "listener B is that of cluster A",
        ),
        (
            [f"{A}store=sqlite:///a.db", "aclbroker.clusters.C.store=sqlite:///a.db"],
            "it is the store of cluster A",
        ),
        ([f"{A}store=sqlite:///aclbroker.db"], "it is the store of the server's own cluster"),
        (["aclbroker.clusters.a b.store=memory:"], "'a b' is no id of a cluster"),
        (["aclbroker.clusters..store=memory:"], "'' is no id of a cluster"),
        ([f"{A}store=memory:", "aclbroker.cluster=memory"], "there are further clusters"),
    ],
)  # fmt: skip
def test_a_cluster_that_cannot_be_stops_the_start(
    load_error: LoadError, lines: list[str], said: str
) -> None:
    escaped = [line.replace("a b", "a\\ b") for line in lines]
    [problem] = load_error(*LISTENERS, *escaped).problems
    assert said in problem


def test_a_typing_error_in_the_name_of_a_clusters_setting_is_told(load_text: LoadText) -> None:
    config = load_text(*LISTENERS, f"{A}store=memory:", f"{A}super.user=User:a")
    [warning] = [each for each in config.warnings if "did you mean" in each]
    assert f"did you mean {A}super.users?" in warning


def test_the_api_has_a_listener_for_each_url_and_tls_by_the_prefix(load_text: LoadText) -> None:
    config = load_text(*LISTENERS, f"{API}=http://127.0.0.1:8090,http://[::1]:8091/")
    assert [(each.name, each.host, each.port) for each in config.metadata_listeners] == [
        ("http://127.0.0.1:8090", "127.0.0.1", 8090),
        ("http://[::1]:8091", "::1", 8091),
    ]
    assert not [each for each in config.warnings if API in each]


def test_a_cluster_that_anybody_may_administer_is_told(load_text: LoadText) -> None:
    anybody = (f"{A}store=memory:", f"{A}listeners=B", f"{A}super.users=User:ANONYMOUS")
    listeners = "listeners=SASL_PLAINTEXT://127.0.0.1:9092,B://:9093"
    protocols = "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,B:PLAINTEXT"
    config = load_text(JAAS, "sasl.enabled.mechanisms=PLAIN", listeners, protocols, *anybody)
    assert any("whoever reaches listener B" in each for each in config.warnings)


def test_the_example_of_the_documentation_is_taken_without_a_warning(
    load_text: LoadText, tmp_path: Path
) -> None:
    page = Path(__file__).parents[2] / "docs" / "mds.md"
    example = page.read_text().partition("```properties\n")[2].partition("```")[0]
    key = tmp_path / "key.pem"
    key.write_text(Authority().issue().pem())
    for path in ("/etc/aclbroker/keystore.pem", "/etc/aclbroker/token-key.pem"):
        example = example.replace(path, str(key))
    config = load_text(*example.splitlines())
    assert not config.warnings
    assert [each.cluster_id for each in config.clusters] == ["lkc-A"]
    assert [each.name for each in config.metadata_listeners] == ["https://:8090"]


def test_passwords_that_can_be_read_on_their_way_are_a_warning(load_text: LoadText) -> None:
    config = load_text(*LISTENERS, f"{API}=http://:8090")
    assert any("has no TLS" in each for each in config.warnings)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ftp://h:1", "is not http://HOST:PORT"),
        ("http://h", "is not http://HOST:PORT"),
        ("http://h:99999", "out of range"),
        ("http://u@h:1", "is not http://HOST:PORT"),
        ("http://h:1/path", "is not http://HOST:PORT"),
        ("http://h:1,https://h:1", "there twice"),
        ("https://127.0.0.1:8090", "needs a private key"),
    ],
)
def test_an_url_that_cannot_be_served_stops_the_start(
    load_error: LoadError, value: str, said: str
) -> None:
    assert any(said in each for each in load_error(*LISTENERS, f"{API}={value}").problems)


def test_an_api_that_nobody_could_log_in_to_stops_the_start(load_error: LoadError) -> None:
    of_another = ("aclbroker.clusters.A.store=memory:", f"{A}listeners=SASL_PLAINTEXT,B")
    [problem] = load_error(*LISTENERS, *of_another, f"{API}=http://127.0.0.1:1").problems
    assert "nobody could log in" in problem


def test_other_settings_of_confluents_server_have_no_effect_and_are_named(
    load_text: LoadText,
) -> None:
    config = load_text(*LISTENERS, "confluent.license.topic.replication.factor=1")
    [warning] = [each for each in config.warnings if "confluent." in each]
    assert "no effect here" in warning
