"""Which ACLs and settings hold for which cluster of the log."""

import pytest

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.broker_properties import BrokerSettings
from aclbroker.pipeline.command.options import Given
from aclbroker.pipeline.command.rules import (
    AclSet,
    Settings,
    check_known,
    existing,
    fitting,
    rulesets,
)
from aclbroker.pipeline.errors import InputError


def acl(name: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, PatternType.LITERAL,
        "User:a", "*", AclOperation.READ, AclPermission.ALLOW,
    )  # fmt: skip


ONE, TWO = acl("one"), acl("two")


def names(option: str, sets: list[AclSet], clusters: list[str]) -> dict[str, list[str]]:
    found = rulesets(option, sets, Settings(), clusters)
    return {name: [each.resource_name for each in rules.acls] for name, rules in found.items()}


def test_sets_belong_to_the_cluster_that_the_user_or_the_file_names():
    sets = [AclSet("f", (ONE,), None, "y"), AclSet("g", (TWO,), "x", "other")]
    assert names("--acls", sets, ["x", "y"]) == {"y": ["one"], "x": ["two"]}
    assert names("--acls", sets[:1], ["x", "y"]) == {"y": ["one"]}
    assert names("--acls", [], ["x", "y"]) == {}


def test_a_set_without_a_name_is_of_the_only_cluster():
    assert names("--acls", [AclSet("f", (TWO,)), AclSet("g", (ONE, TWO))], ["x"]) == {
        "x": ["one", "two"]
    }


def test_the_set_to_compare_with_may_be_of_another_cluster():
    assert names("--other", [AclSet("f", (ONE,), None, "elsewhere")], ["x"]) == {"x": ["one"]}


@pytest.mark.parametrize(
    ("sets", "clusters", "said"),
    [
        ([AclSet("f", (ONE,))], ["x", "y"], "f does not say which cluster it is of; .* x, y"),
        ([AclSet("f", (ONE,), None, "z")], ["x"], "f is of cluster z, .* nothing; .* of x"),
        ([AclSet("f", (ONE,), "z")], ["x"], "f is of cluster z"),
    ],
)
def test_a_set_that_fits_no_cluster_is_refused_with_the_clusters_that_there_are(
    sets: list[AclSet], clusters: list[str], said: str
):
    with pytest.raises(InputError, match=f"^--acls {said}"):
        rulesets("--acls", sets, Settings(), clusters)


def test_settings_without_a_cluster_hold_for_all():
    settings = Settings(
        [Given(None, "User:root"), Given("x", "User:x")],
        [Given("y", "User:broker")],
        "INTERNAL",
        ["y"],
    )
    x, y = settings.of("x"), settings.of("y")
    assert x.super_users == {"User:root", "User:x"}
    assert y.super_users == {"User:root"}
    assert x.broker_users == BrokerUsers()
    assert y.broker_users == BrokerUsers(frozenset(["User:broker"]), "INTERNAL")
    assert (x.allow_everyone_if_no_acl_found, y.allow_everyone_if_no_acl_found) == (False, True)
    assert not x.cidr


def test_settings_of_files_and_options_are_added_up():
    file = BrokerSettings(
        frozenset(["User:f"]), frozenset(["User:b"]), "SASL_PLAINTEXT", True, True
    )
    settings = Settings([Given(None, "User:root")], properties=[("x", file)])
    x, y = settings.of("x"), settings.of("y")
    assert x.super_users == {"User:root", "User:f"}
    assert x.broker_users == BrokerUsers(frozenset(["User:b"]), "SASL_PLAINTEXT")
    assert x.allow_everyone_if_no_acl_found
    assert x.cidr
    assert y.super_users == {"User:root"}
    assert not y.cidr


@pytest.mark.parametrize(
    "settings",
    [
        Settings([Given("z", "User:a")]),
        Settings(broker_users=[Given("z", "User:a")]),
        Settings(open_clusters=[None, "z"]),
        Settings(properties=[("z", BrokerSettings())]),
    ],
)
def test_a_setting_of_an_unknown_cluster_is_refused(settings: Settings):
    with pytest.raises(InputError, match="z: the log holds nothing of that cluster; it holds x, y"):
        check_known(settings.clusters(), ["x", "y"])
    check_known(settings.clusters(), ["x", "y"], ["z"])


def test_a_cluster_without_events_does_not_refuse_the_others():
    x, z = AclSet("f", (ONE,), "x"), AclSet("g", (TWO,), None, "z")
    assert fitting("--acls", [z, x], ["x", "y"]) == ([x], ["z"])
    assert fitting("--acls", [x], ["x", "y"]) == ([x], [])
    assert fitting("--acls", [AclSet("f", (ONE,)), z], ["x"]) == ([AclSet("f", (ONE,))], ["z"])


def test_a_set_to_compare_with_is_left_out_where_another_is_of_a_cluster_of_the_log():
    x, z = AclSet("f", (ONE,), None, "x"), AclSet("g", (TWO,), None, "z")
    assert fitting("--other", [z, x], ["x", "y"]) == ([x], ["z"])
    assert fitting("--other", [z], ["x"]) == ([z], [])


def test_of_many_clusters_an_error_names_the_first():
    clusters = [f"c{number}" for number in range(40)]
    with pytest.raises(InputError, match=r"log is of c0, c1, c2, c3, c4 and 35 more: write"):
        rulesets("--acls", [AclSet("f", (ONE,))], Settings(), clusters)


def test_sets_of_which_none_fits_are_not_left_out_but_refused():
    sets = [AclSet("g", (TWO,), None, "z")]
    assert fitting("--acls", sets, ["x"]) == (sets, [])


def test_topics_of_a_file_are_those_of_its_cluster():
    given = [
        (Given("eu", "a.txt"), frozenset(["orders"])),
        (Given("eu", "b.txt"), frozenset(["bills"])),
    ]
    assert existing(given, ["eu", "us"]) == {
        "eu": {ResourceType.TOPIC: frozenset(["orders", "bills"])}
    }
    with pytest.raises(InputError, match=r"--topics c\.txt does not say which cluster it is of"):
        existing([(Given(None, "c.txt"), frozenset())], ["eu", "us"])
