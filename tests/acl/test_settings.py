"""The properties that decide beside the ACLs, as the broker and the audit pipeline read them."""

import pytest

from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.settings import (
    acl_limit,
    authorizer_settings,
    history_changes,
    inter_broker_listener,
    parse_limit,
    stale_settings,
)


def test_without_properties_nobody_is_exempt_and_nothing_is_limited():
    settings = authorizer_settings({"node.id": "1"})
    nobody: frozenset[str] = frozenset()
    assert settings == (nobody, BrokerUsers(nobody, "PLAINTEXT"), False, False)
    assert acl_limit({}) is None
    assert history_changes({}) == 100_000
    assert stale_settings({}) == (30, False)


def test_values_are_written_as_in_kafka():
    settings = authorizer_settings(
        {
            "super.users": " User:a ;User:CN=b,O=c;;",
            "broker.users": "User:broker",
            "inter.broker.listener.name": "internal",
            "allow.everyone.if.no.acl.found": " TRUE ",
            "aclbroker.acl.host.cidr": "true",
        }
    )
    assert settings.super_users == {"User:a", "User:CN=b,O=c"}
    assert settings.broker_users == BrokerUsers(frozenset({"User:broker"}), "INTERNAL")
    assert settings.allow_everyone_if_no_acl_found
    assert settings.cidr
    stale = {"aclbroker.store.max.lag.ms": "500", "aclbroker.store.stale": " Deny "}
    assert stale_settings(stale) == (0.5, True)


def test_the_brokers_listener_is_named_or_has_the_name_of_its_protocol():
    protocol = {"security.inter.broker.protocol": "SASL_SSL"}
    assert inter_broker_listener({}) == "PLAINTEXT"
    assert inter_broker_listener(protocol) == "SASL_SSL"
    assert inter_broker_listener(protocol | {"inter.broker.listener.name": "own"}) == "OWN"
    assert inter_broker_listener(protocol | {"inter.broker.listener.name": ""}) == "SASL_SSL"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("super.users", "User:a,b;c", "'c' has no colon; it must be Type:name"),
        ("broker.users", "broker", "'broker' has no colon"),
        ("allow.everyone.if.no.acl.found", "", "true or false"),
        ("aclbroker.acl.host.cidr", "1", "true or false"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_what_is_allowed(name, text, told):
    with pytest.raises(ValueError, match=told) as refused:
        authorizer_settings({name: text})
    assert str(refused.value).startswith(f"{name}={text!r}: ")


@pytest.mark.parametrize("text", ["-1", "+1", "1_0", "many", str(2**31)])
def test_a_limit_is_a_number(text):
    with pytest.raises(ValueError, match=r"aclbroker\.acl\.limit=.* number of ACLs, or empty"):
        acl_limit({"aclbroker.acl.limit": text})


@pytest.mark.parametrize(("text", "limit"), [("", None), ("0", 0), ("2147483647", 2**31 - 1)])
def test_a_limit_may_be_none_at_all(text, limit):
    assert parse_limit(text) == limit
