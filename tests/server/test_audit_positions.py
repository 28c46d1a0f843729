"""Each audit record names the position of the store whose ACLs decided."""

import json

from aclbroker.broker.stores.reading import read_acls_at, read_history
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import DESCRIBE, allow
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client

EVERYTHING = DeleteAclsFilter(2, None, 3, None, None, 1, 1)


def client(broker: Broker, user: str) -> Client:
    made = Client(broker.listeners["SASL_PLAINTEXT"])
    assert made.login(user, PASSWORDS[user]).error_code == 0
    return made


def test_a_record_names_the_acls_that_decided(start_broker: StartBroker, tmp_path):
    path = tmp_path / "audit.jsonl"
    settings = {"file": str(path), "level": "all", "rollup.seconds": "0"}
    broker = start_broker({f"aclbroker.audit.{name}": each for name, each in settings.items()})
    with client(broker, "admin") as admin, client(broker, "alice") as alice:

        def decide() -> None:
            asked = MetadataRequest([MetadataRequestTopic(bytes(16), "orders")])
            alice.ask(ApiKey.METADATA, 12, asked)

        decide()
        creation = AclCreation(2, "orders", 3, "User:alice", "*", DESCRIBE.value, 3)
        admin.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([creation]))
        decide()
        admin.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([EVERYTHING]))
        decide()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    found = [
        (each["allowed"], each["acls"])
        for each in records
        if each["event"] == "authorization"
        and (each["principal"], each["resource_name"]) == ("User:alice", "orders")
        and each["operation"] == "DESCRIBE"
    ]
    before, granted, revoked = (acls for _, acls in found)
    assert [allowed for allowed, _ in found] == [False, True, False]
    assert before < granted < revoked
    acl = allow("User:alice", DESCRIBE, "orders")
    there = [read_acls_at(broker.store, position=each).acls for each in (before, granted, revoked)]
    assert there == [[], [acl], []]
    made = [
        (each.position, each.removed, each.origin) for each in read_history(broker.store).changes
    ]
    assert [(position, removed) for position, removed, _ in made] == [
        (granted, False),
        (revoked, True),
    ]
    assert {origin and (origin.principal, origin.host) for *_, origin in made} == {
        ("User:admin", "127.0.0.1")
    }
