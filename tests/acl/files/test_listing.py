"""ACLs from files: policies, and what kafka-acls.sh --list printed."""

from pathlib import Path

import pytest

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.files.listing import parse_listing
from aclbroker.acl.files.old_listing import read_old_listing
from aclbroker.acl.files.policy import Policy, PolicyError, write_policy
from aclbroker.acl.files.reading import read_acls

LISTED = (
    "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, "
    "patternType=LITERAL)`:\n"
    "\t(principal=User:CN=alice, OU=x, host=*, operation=READ, permissionType=ALLOW)\n"
    "\t(principal=User:*, host=10.0.0.1, operation=ALL, permissionType=DENY)\n"
    "\n"
    "Current ACLs for resource `ResourcePattern(resourceType=TRANSACTIONAL_ID, "
    "name=a, patternType=LITERAL)`, patternType=PREFIXED)`: \n"
    " \t(principal=User:bob, host=*, operation=TWO_PHASE_COMMIT, permissionType=ALLOW) \n"
    " \n"
)
ACLS = [
    AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL,
        "User:CN=alice, OU=x", "*", AclOperation.READ, AclPermission.ALLOW,
    ),
    AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL,
        "User:*", "10.0.0.1", AclOperation.ALL, AclPermission.DENY,
    ),
    AclBinding(
        ResourceType.TRANSACTIONAL_ID, "a, patternType=LITERAL)`", PatternType.PREFIXED,
        "User:bob", "*", AclOperation.TWO_PHASE_COMMIT, AclPermission.ALLOW,
    ),
]  # fmt: skip


def read(tmp_path: Path, text: str | bytes) -> Policy:
    path = tmp_path / "acls"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_acls(str(path))


def test_what_kafka_acls_lists_is_read_with_any_name_in_it(tmp_path: Path):
    assert read(tmp_path, LISTED) == Policy(ACLS)
    assert read(tmp_path, LISTED.replace("\n", "\r\n")) == Policy(ACLS)


def test_a_policy_file_is_read_with_its_cluster(tmp_path: Path):
    write_policy(Policy(ACLS, "c"), tmp_path / "policy.yaml")
    found = read_acls(str(tmp_path / "policy.yaml"))
    assert (set(found.acls), found.cluster) == (set(ACLS), "c")


HEAD = "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=x, patternType={})`:\n"


OLD_ENTRY = "U:a has Allow permission for operations: Read from hosts: *"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (HEAD.format("LITERAL") + "WARN something", 2, "neither 'Current ACLs"),
        (HEAD.format("GLOB"), 1, "GLOB is unknown"),
        (HEAD.format("MATCH") + "(principal=U:a, host=*, operation=READ, permissionType=ALLOW)",
         2, "pattern type"),
        (HEAD.format("LITERAL") + "(principal=U:a, host=*, operation=REED, permissionType=ALLOW)",
         2, "REED is unknown"),
        (HEAD.format("LITERAL") + "(principal=U:a, host=*, operation=READ)", 2, "not one"),
        (HEAD.format("LITERAL") + "(principal=U:a, host=b, host=*, operation=READ, "
         "permissionType=ALLOW)", 2, "not one"),
        # A name with a line break.
        (HEAD.format("LITERAL").replace("x", "x\ny"), 1, "neither 'Current ACLs"),
        ("ACLs for principal `User:a`\n" + HEAD.format("LITERAL"), 1, "not all of them"),
        ("Current ACLs for resource `Topic:x`:\n(principal=U:a)", 2, "neither 'Current ACLs"),
        ("Current ACLs for resource `Tropic:x`:\n" + OLD_ENTRY, 2, "resource_type must be one of"),
        ("Current ACLs for resource `Topic:x`:\n" + OLD_ENTRY[2:], 2, "it has no colon"),
        ("Current ACLs for resource `Topic:x`:\n" + OLD_ENTRY * 2, 2, "neither"),
    ],
)  # fmt: skip
def test_a_line_without_one_meaning_is_named(tmp_path: Path, text: str, line: int, said: str):
    with pytest.raises(PolicyError) as error:
        read(tmp_path, text)
    assert f"acls: line {line}: " in str(error.value)
    assert said in str(error.value)


ENTRY = "(principal=U:a, host=*, operation=READ, permissionType=ALLOW)"


NO_RESOURCE = "acls: line 1: no line 'Current ACLs for resource"


def test_an_acl_that_stands_before_all_resources_is_named():
    with pytest.raises(PolicyError, match=NO_RESOURCE):
        list(parse_listing(ENTRY, "acls"))
    with pytest.raises(PolicyError, match=NO_RESOURCE):
        read_old_listing(OLD_ENTRY, "acls")


def test_bytes_that_are_not_utf_8_are_refused(tmp_path: Path):
    with pytest.raises(PolicyError, match="acls: line 8: 'utf-8' codec"):
        read(tmp_path, LISTED.encode() + b"\xff")
