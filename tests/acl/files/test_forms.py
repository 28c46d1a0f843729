"""ACL files of other tools keep their meaning, or are refused with the tool's name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import Policy, PolicyError, write_policy
from aclbroker.acl.files.reading import acls_of, read_acls
from aclbroker.acl.files.words import acl_of
from aclbroker.cli.migrate.places import open_place
from tests.acl.examples import READ, allow


def acl(text: str) -> AclBinding:
    """Return an ACL from words: permission, operation, type, pattern, name, principal, host."""
    permission, operation, kind, pattern, name, principal, host = text.split(" ")
    return acl_of(
        {
            "permission": permission,
            "operation": operation,
            "resource_type": kind,
            "pattern_type": pattern,
            "resource_name": name,
            "principal": principal,
            "host": host,
        }
    )


def read(text: str, name: str = "acls") -> set[AclBinding]:
    return set(acls_of(text, name).policy.acls)


KSM = """KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host
User:alice,Topic,LITERAL,foo,Read,Allow,*
User:bob,Group,PREFIXED,bar,Write,Deny,12.34.56.78
User:peter,Cluster,LITERAL,kafka-cluster,IdempotentWrite,Allow,*
"User:CN=a,OU=b",TransactionalId,LITERAL,tx,DescribeConfigs,Allow,*
"""
KSM_ACLS = {
    acl("Allow Read Topic Literal foo User:alice *"),
    acl("Deny Write Group Prefixed bar User:bob 12.34.56.78"),
    acl("Allow Idempotent_Write Cluster Literal kafka-cluster User:peter *"),
    acl("Allow Describe_Configs Transactional_Id Literal tx User:CN=a,OU=b *"),
}
OLD = """Current ACLs for resource `Topic:{}orders`:\x20
 \tUser:CN=client,OU=TEST,C=US has Allow permission for operations: Read from hosts: *\x20
\tUser:bob has Deny permission for operations: DescribeConfigs from hosts: 10.0.0.1\x20

Current ACLs for resource `TransactionalId:{}tx:1`:\x20
\tUser:bob has Allow permission for operations: Write from hosts: *\x20

"""
RPK = {
    "matches": [
        {
            "principal": "User:bar",
            "host": "*",
            "resource_type": "TOPIC",
            "resource_name": "foo",
            "resource_pattern_type": "PREFIXED",
            "operation": "ALTER_CONFIGS",
            "permission": "DENY",
        }
    ]
}
STRIMZI = """# of the cluster
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: my-user, labels: {strimzi.io/cluster: my-cluster}}
spec:
  authentication: {type: tls}
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: no, patternType: prefix}
        operations: [Read, Describe]
      - resource: {type: group, name: g, patternType: literal}
        operations: [Read]
        type: deny
        host: 10.0.0.1
      - resource: {type: cluster}
        operation: IdempotentWrite
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: other, labels: {strimzi.io/cluster: my-cluster}}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
      - resource: {type: transactionalId, name: 12}
        operations: [All]
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: without, labels: {strimzi.io/cluster: my-cluster}}
spec: {authentication: {type: tls}}
"""
STRIMZI_ACLS = {
    acl("Allow Read Topic Prefixed no User:CN=my-user *"),
    acl("Allow Describe Topic Prefixed no User:CN=my-user *"),
    acl("Deny Read Group Literal g User:CN=my-user 10.0.0.1"),
    acl("Allow Idempotent_Write Cluster Literal kafka-cluster User:CN=my-user *"),
    acl("Allow All Transactional_Id Literal 12 User:other *"),
}


def test_a_csv_of_kafka_security_manager_is_read() -> None:
    assert read(KSM) == read(KSM, "acls.csv") == read(KSM.replace("\n", "\r\n")) == KSM_ACLS
    old = "KafkaPrincipal,ResourceType,ResourceName,Operation,PermissionType,Host\n"
    found = acl("Allow Read Topic Literal x User:a *")
    assert read(f"{old}User:a,Topic,x,Read,Allow,*\n") == {found}


@pytest.mark.parametrize("pattern", ["", "LITERAL:", "PREFIXED:"])
def test_a_list_from_before_kafka_2_2_is_read(pattern: str) -> None:
    kind = pattern.removesuffix(":") or "LITERAL"
    assert read(OLD.replace("{}", pattern), "acls.txt") == {
        acl(f"Allow Read Topic {kind} orders User:CN=client,OU=TEST,C=US *"),
        acl(f"Deny Describe_Configs Topic {kind} orders User:bob 10.0.0.1"),
        acl(f"Allow Write Transactional_Id {kind} tx:1 User:bob *"),
    }


def test_a_list_from_before_kafka_2_2_with_and_without_patterns_is_refused() -> None:
    with pytest.raises(PolicyError, match="acls: some resources have a pattern type"):
        read(OLD.format("", "LITERAL:"))


def test_json_of_rpk_is_read() -> None:
    found = acl("Deny Alter_Configs Topic Prefixed foo User:bar *")
    assert read(json.dumps(RPK)) == read(json.dumps(RPK, indent=2), "acls.json") == {found}


def test_kafka_users_of_strimzi_are_read() -> None:
    assert read(STRIMZI) == read(STRIMZI, "users.yaml") == STRIMZI_ACLS


def test_documents_that_are_no_kafka_users_are_passed_over() -> None:
    assert read(f"- a list\n---\n{STRIMZI}") == read(STRIMZI)


def test_kafka_users_that_kubectl_prints_are_read() -> None:
    rule = {"resource": {"type": "topic", "name": "t"}, "operations": ["Read"]}
    spec = {"authorization": {"type": "simple", "acls": [rule]}}
    user = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser", "metadata": {"name": "u"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [user | {"spec": spec}]}
    for found in (user | {"spec": spec}, listed):
        assert read(json.dumps(found)) == {acl("Allow Read Topic Literal t User:u *")}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("text", [KSM, OLD.replace("{}", ""), json.dumps(RPK), STRIMZI])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_each_encoding_is_read_or_refused(text: str, encoding: str, line_end: str) -> None:
    content = text.replace("\n", line_end).encode(encoding)
    if encoding == "utf-16-le":
        with pytest.raises(PolicyError, match=r"acls: line 1: .* as UTF-16 does; save it as"):
            acls_of(content, "acls")
    else:
        assert set(acls_of(content, "acls").policy.acls) == read(text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_policy_in_each_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "policy.yaml"
    write_policy(Policy([allow("User:é", READ, "x")]), path)
    path.write_bytes(path.read_text().replace("\n", "\r\n").encode(encoding))
    assert read_acls(path).acls == [allow("User:é", READ, "x")]


TERRAFORM = 'resource "kafka_acl" "test" {\n  resource_name = "test"\n}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        (" \r\n\n", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        (TERRAFORM, "this is Terraform's HCL"),
        (f"# ours\n\n{TERRAFORM}", "this is Terraform's HCL"),
        ('{"version": 4, "terraform_version": "1.5.0"}', "this is Terraform's state"),
        ("PRINCIPAL  HOST  RESOURCE-TYPE  RESOURCE-NAME\nUser:a *", "write it with --format json"),
        ("  Principal | Permission | Operation\n", "a table of the Confluent CLI"),
        ("kafka-acls.sh --add --topic t\n", "a file of kafka-acls.sh commands"),
        ("Topic: a\tTopicId: b\tPartitionCount: 1", "what kafka-topics.sh --describe printed"),
        ('{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow"}]}', "in ZooKeeper"),
        ("apiVersion: v1\nkind: Secret\n", "this is a Secret of Kubernetes"),
        ('{"apiVersion": "v1", "kind": "Secret"}', "this is a Secret of Kubernetes"),
        ("Error while executing ACL command: timeout\n", "line 1: 'Error while executing ACL"),
        ("[1, 2]", "begins no form of ACLs that is read here: a policy file"),
        (KSM.replace("User:bob", "bob"), "line 3: The principal of a new ACL must be written Type"),
        (KSM.replace("User:bob", "User:bob "), "line 3: 'User:bob ' has a blank at its end"),
        (KSM.replace("Deny", "Denied"), "line 3: permission must be one of DENY, ALLOW"),
        (KSM.replace("Host\n", "Where\n"), "the first line must name the columns: KafkaPrincipal"),
        (KSM.replace(",*\n", "\n"), "line 2: it has 6 values for 7 columns"),
        ('{"matches": [{"principal": "RedpandaRole:a"}]}', "match 1: host must be a text"),
        ('{"matches": {}}', "matches must be a list"),
        (json.dumps(RPK).replace("User:bar", "RedpandaRole:bar"), "a role of Redpanda"),
        (json.dumps(RPK).replace('"host"', '"error": "no", "host"'), "rpk reports an error: no"),
        (json.dumps(RPK).replace("TOPIC", "REGISTRY_SUBJECT"), "resource_type must be one of"),
        (STRIMZI.replace("simple", "opa", 1), "KafkaUser my-user: an authorization other than"),
        (STRIMZI.replace("prefix}", "match}"), "KafkaUser my-user: rule 1: patternType must be"),
        (STRIMZI.replace("Describe", "Look"), "KafkaUser my-user: rule 1: operation must be one"),
        (STRIMZI.replace("prefix}", "[literal]}"), "rule 1: patternType must be a text"),
        (STRIMZI.replace("type: tls", "type: [tls]"), "KafkaUser my-user: type must be a text"),
        (STRIMZI.replace("my-cluster}", "[my-cluster]}", 1), "strimzi.io/cluster must be a text"),
        (STRIMZI.replace("my-user", "[" * 3000 + "]" * 3000), "nested too deeply"),
        (STRIMZI.replace("[Read]", "Read"), "KafkaUser my-user: rule 2: operations must be a list"),
        (STRIMZI.replace("type: deny", "type: [deny]"), "rule 2: permission must be a text"),
        (STRIMZI.replace("type: tls", "type: kerberos"), "the authentication 'kerberos' is not"),
        (STRIMZI.replace("my-cluster", "another", 1), "its KafkaUsers are of several clusters"),
        (STRIMZI.replace("name: other", "name: [other]"), "metadata.name must be a text"),
        (STRIMZI.replace("spec:\n", "spec: x\n", 1), "acls: "),
        (STRIMZI.replace("{type: cluster}", "cluster"), "rule 3: resource must be a mapping"),
        (STRIMZI.replace("acls:\n", "acls: {}\n", 1).replace("      - r", "#", 1), "acls: "),
        (STRIMZI.partition("    acls:")[0] + "    acls: {}\n", "spec.authorization.acls must be"),
        (STRIMZI.partition("    acls:")[0] + "    acls: [read]\n", "rule 1: a rule must be a map"),
    ],
)
def test_what_is_not_read_is_refused_by_its_name(text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as error:
        acls_of(text, "acls")
    assert str(error.value).startswith("acls: ")
    assert problem in str(error.value)


OWN_HEAD = "resource_type,resource_name,pattern_type,principal,host,operation,permission"
OWN_ROW = "TOPIC,orders,LITERAL,User:a,*,READ,ALLOW"


def test_a_csv_of_our_own_is_read() -> None:
    assert read(f"{OWN_HEAD}\n{OWN_ROW}\n", "acls.csv") == {allow("User:a", READ, "orders")}


def of_fields(**fields: object) -> str:
    """Return our own JSON with one ACL, some of whose fields are others."""
    acl = dict(zip(OWN_HEAD.split(","), OWN_ROW.split(","), strict=True))
    return json.dumps({"version": 1, "acls": [acl | fields]})


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "[1, 2]", 'expected {"version": 1, "acls": [...]}'),
        ("a.json", '{"version": 1}', 'expected {"version": 1, "acls": [...]}'),
        ("a.json", '{"version": 2, "acls": []}', "version must be 1, not 2"),
        ("a.json", '{"version": 1, "acls": {}}', "acls must be a list of objects"),
        ("a.json", '{"version": 1, "acls": [], "cluster": 7}', "cluster must be a text"),
        ("a.json", '{"version": 1, "acls": [', "no JSON: "),
        ("a.json", '{"version": 1, "acls": ' + "[" * 100_000, "it is nested too deeply"),
        ("a.json", '{"version": 1, "version": 1}', 'has the key "version" more than once'),
        ("a.json", of_fields(more="x"), "entry 1: expected exactly "),
        ("a.json", of_fields(host=7), "entry 1: host must be a text, not 7"),
        ("a.csv", "principal,host\n", f"the first line must name the columns: {OWN_HEAD}"),
        ("a.csv", f'{OWN_HEAD}\n"TOPIC', "line 2: unexpected end of data"),
    ],
)
def test_a_mistake_in_a_file_of_our_own_is_named(name: str, text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as error:
        acls_of(text, name)
    assert str(error.value).startswith(f"{name}: ")
    assert problem in str(error.value)


@pytest.mark.parametrize("name", ["acls.txt", "acls.json", "acls.yaml", "acls"])
def test_an_empty_file_is_no_set_without_acls(name: str) -> None:
    with pytest.raises(PolicyError, match="the file is empty"):
        read("\n", name)


def test_a_file_of_another_form_is_not_written_over(tmp_path: Path) -> None:
    """Writing over it could lose a DENY, and the other tool could not read our form."""
    path = tmp_path / "acls.csv"
    path.write_text(KSM)
    place = open_place(f"file:{path}", is_target=True)
    with pytest.raises(Exception, match=r"CSV of kafka-security-manager, and CSV of aclbroker"):
        place.write([allow()], [])
    assert path.read_text() == KSM
