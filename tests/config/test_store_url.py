"""Which store a configuration names, and what it says of settings of ZooKeeper."""

import sys

import pytest

from aclbroker.broker.config import ConfigError
from aclbroker.broker.config.store_url import DEFAULT_STORE, store_url
from aclbroker.broker.stores import StoreError, open_store
from tests.config.conftest import LoadText
from tests.config.test_settings import ADMIN, LOCAL

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.mark.parametrize(
    ("properties", "url"),
    [
        ({}, DEFAULT_STORE),
        ({"zookeeper.connect": "zk:2181"}, DEFAULT_STORE),
        ({"authorizer.class.name": STANDARD, "zookeeper.connect": "zk:2181"}, DEFAULT_STORE),
        ({"authorizer.class.name": ACL_AUTHORIZER}, DEFAULT_STORE),
        (
            {"authorizer.class.name": ACL_AUTHORIZER, "zookeeper.connect": "a:1,b:2/c"},
            "zookeeper://a:1,b:2/c",
        ),
        (
            {
                "authorizer.class.name": ACL_AUTHORIZER,
                "zookeeper.connect": "a:1",
                "authorizer.zookeeper.url": "b:2",
            },
            "zookeeper://b:2",
        ),
        (
            {
                "authorizer.class.name": ACL_AUTHORIZER,
                "zookeeper.connect": "a:1",
                "aclbroker.store": "memory:",
            },
            "memory:",
        ),
    ],
)
def test_the_store_is_the_one_that_is_named_else_that_of_the_authorizer(properties, url):
    assert store_url(properties) == url


def test_settings_of_zookeeper_have_an_effect_where_the_store_is_there(load_text: LoadText):
    lines = (
        "zookeeper.connect=zk:2181",
        "zookeeper.set.acl=false",
        "authorizer.zookeeper.session.timeout.ms=6000",
        "zookeeper.max.in.flight.requests=10",
    )
    config = load_text(LOCAL, ADMIN, f"authorizer.class.name={ACL_AUTHORIZER}", *lines)
    assert config.store == "zookeeper://zk:2181"
    assert config.warnings == (
        "settings of Kafka that have no effect here: zookeeper.max.in.flight.requests",
    )
    [without] = load_text(LOCAL, ADMIN, *lines).warnings
    assert "zookeeper.connect" in without


def test_a_login_to_zookeeper_without_zookeeper_is_told(load_text: LoadText):
    config = load_text(LOCAL, ADMIN, "aclbroker.zookeeper.sasl.jaas.config=x")
    [warning] = config.warnings
    assert "the store is not in ZooKeeper" in warning


def test_a_bad_value_is_refused_with_what_is_allowed(load_text: LoadText):
    with pytest.raises(ConfigError, match=r"zookeeper\.session\.timeout\.ms"):
        load_text(LOCAL, ADMIN, "zookeeper.session.timeout.ms=soon")


@pytest.mark.parametrize("missing", ["kazoo", "puresasl"])
def test_without_the_extra_its_name_is_told(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(StoreError, match=rf"{missing} is not.*aclbroker\[zookeeper\]"):
        open_store("zookeeper://localhost:2181")


@pytest.mark.parametrize(
    "url",
    [
        "kafka://u:hunter2@localhost:9092/acls",
        "kafka://u:hun/ter2@localhost:9092/acls",
        "zookeeper://u:hunter2@localhost:2181/kafka",
        "kafk://u:hunter2@localhost:9092/acls",
        "kafka+acls://u:hunter2@localhost:9092",
    ],
)
def test_a_login_in_a_url_is_refused_and_not_repeated(url):
    with pytest.raises(StoreError) as refused:
        open_store(url)
    assert "***@" in str(refused.value)
    assert "ter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["aclbroker.store", "aclbroker.clusters.b.store"])
def test_a_setting_that_is_refused_does_not_repeat_a_login(load_text: LoadText, name):
    with pytest.raises(ConfigError, match=r"kafk://\*\*\*@localhost") as refused:
        load_text(LOCAL, ADMIN, f"{name}=kafk://u:hunter2@localhost:9092/acls")
    assert "hunter2" not in str(refused.value)


def test_a_path_may_hold_what_looks_like_a_login(load_text: LoadText):
    with pytest.raises(ConfigError, match="x:///u:p@h"):
        load_text(LOCAL, ADMIN, "aclbroker.store=x:///u:p@h")
