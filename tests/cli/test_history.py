"""`aclbroker history` and `aclbroker acls --at`: who changed the ACLs, and what they were."""

import asyncio
import csv
import io
import json
import re

import pytest

from aclbroker.acl.bindings import AclFilter
from aclbroker.broker.client.acls import create_acls, delete_acls
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.broker.stores import Origin
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.cli.acls.command import AclsCommand
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.acl.examples import CLUSTER, PREFIXED, WRITE, allow, deny
from tests.support.broker import Broker

NOON = 4_102_488_000_000
"""2100-01-01, when the file is there already."""


def origin(minutes, principal="User:alice", host="192.0.2.1"):
    return Origin(principal, host, NOON + minutes * 60_000)


@pytest.fixture
def run(capsys):
    def run(*words):
        command = parse_arguments(list(words))
        assert isinstance(command, AclsCommand | QuestionCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def path(tmp_path):
    """A store that was changed at noon, five and ten minutes later."""
    path = tmp_path / "acls.db"

    async def change():
        store = SqliteStore(path)
        await store.open()
        prefix = allow("User:bob", WRITE, "ord", pattern_type=PREFIXED)
        await store.apply([allow(), prefix], [], origin(0))
        await store.apply([], [allow()], origin(5, "User:carol d", "2001:db8::1"))
        cluster = deny("User:eve", WRITE, "kafka-cluster", resource_type=CLUSTER)
        await store.apply([cluster, allow(name="a\tb")], [], origin(10, None, ""))
        await store.close()

    asyncio.run(change())
    return path


GRANTED = "2 2100-01-01T12:00:00.000Z User:alice from 192.0.2.1 granted: "
REVOKED = '3 2100-01-01T12:05:00.000Z "User:carol d" from 2001:db8::1 revoked: '
BROKER = "5 2100-01-01T12:10:00.000Z broker granted: "
ORDERS = "ALLOW READ on TOPIC LITERAL orders to User:alice from *"
ORD = "ALLOW WRITE on TOPIC PREFIXED ord to User:bob from *"
EVE = "DENY WRITE on CLUSTER LITERAL kafka-cluster to User:eve from *"
TAB = 'ALLOW READ on TOPIC LITERAL "a\\tb" to User:alice from *'


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [GRANTED + ORDERS, GRANTED + ORD, REVOKED + ORDERS, BROKER + EVE, BROKER + TAB]),
        (["--resource", "topic:orders"], [GRANTED + ORDERS, GRANTED + ORD, REVOKED + ORDERS]),
        (["--resource", "topic:order", "--resource", "cluster"], [GRANTED + ORD, BROKER + EVE]),
        (["--resource", "topic:orders", "--principal", "User:bob"], [GRANTED + ORD]),
        (["--by", "User:carol d"], [REVOKED + ORDERS]),
        (["--by", "broker"], [BROKER + EVE, BROKER + TAB]),
        (["--principal", "User:nobody"], ["no changes"]),
    ],
)
def test_the_history_tells_who_granted_and_revoked_what_when_and_from_where(
    run, path, words, expected
):
    assert run("history", "--store", f"sqlite:///{path}", *words) == (
        0,
        "".join(f"{line}\n" for line in expected),
        "",
    )


def test_the_history_comes_as_rows_for_programs(run, path, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(f"aclbroker.store=sqlite:///{path}\n")
    words = ("history", "--config", str(config), "--output")
    rows = json.loads(run(*words, "json")[1])
    assert rows[2] == {
        "position": 3,
        "time": "2100-01-01T12:05:00.000Z",
        "by": "User:carol d",
        "from": "2001:db8::1",
        "change": "revoked",
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    assert (rows[3]["by"], rows[3]["from"]) == ("broker", None)
    assert len(list(csv.DictReader(io.StringIO(run(*words, "csv")[1])))) == len(rows) == 5


NOTHING = ""
LISTED_ORD = (
    "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=ord, "
    "patternType=PREFIXED)`:\n"
    "\t(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW)\n\n"
)
LISTED_ORDERS = (
    "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, "
    "patternType=LITERAL)`:\n"
    "\t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)\n\n"
)


@pytest.mark.parametrize(
    ("at", "said", "expected"),
    [
        ("0", "position 0", NOTHING),
        ("1", "position 0", NOTHING),
        ("2", "position 2", LISTED_ORDERS + LISTED_ORD),
        ("3", "position 3", LISTED_ORD),
        ("2100-01-01T11:59:59", "position 0, as at 2100-01-01T11:59:59.000Z", NOTHING),
        (
            "2100-01-01T12:04:59.999Z",
            "position 2, as at 2100-01-01T12:04:59.999Z",
            LISTED_ORDERS + LISTED_ORD,
        ),
        ("2100-01-01T14:05+02:00", "position 3, as at 2100-01-01T12:05:00.000Z", LISTED_ORD),
    ],
)
def test_the_acls_are_listed_as_they_were(run, path, at, said, expected):
    words = ("acls", "--store", f"sqlite:///{path}", "--at", at)
    listed = sorted(expected.split("\n\n"))
    status, out, err = run(*words)
    assert (status, sorted(out.split("\n\n")), err) == (0, listed, f"aclbroker: {said}\n")


def test_the_acls_of_then_are_selected_as_those_of_a_cluster(run, path):
    words = ("acls", "--list", "--store", f"sqlite:///{path}")
    assert run(*words, "--topic", "ord", "--resource-pattern-type", "prefixed")[1] == LISTED_ORD
    assert run(*words, "--topic", "orders", "--at", "2")[1] == LISTED_ORDERS
    by_principal = run(*words, "--principal", "User:bob")[1]
    assert by_principal == f"ACLs for principal `User:bob`\n{LISTED_ORD}"
    assert run(*words, "--cluster")[2] == "aclbroker: position 5\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "6"], "has come to position 5, and not yet to 6"),
        (["--at", "2001-01-01"], "does not reach back to 2001-01-01T00:00:00.000Z: it begins at"),
        (["--at", "yesterday"], "'yesterday' is no position, such as 48213, and no time, such as"),
        (["--at", "-1"], "is no position"),
        (["--at", "9" * 5_000], "9...' is no position"),
        (["--at", "99999-01-01"], "is no position"),
    ],
)
def test_a_moment_that_cannot_be_told_is_an_error_that_says_why(run, path, words, said):
    status, out, _ = run("acls", "--store", f"sqlite:///{path}", *words)
    assert status == 1
    assert said in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "1"], "The --at option is only available if --store is set"),
        (["--store", "memory:", "--add"], 'Option "[store]" can\'t be used with option "[add]"'),
        (["--store", "memory:", "--bootstrap-server", "x:1"], 'with option "[bootstrap-server]"'),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, words, said):
    status, _, err = run("acls", *words)
    assert status == 1
    assert said in err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("acls.db", "names no store; write sqlite:///relative/path"),
        ("memory:", "has no file, and so no history"),
        ("zookeeper://zk-1:2181/kafka", "keeps no history: ZooKeeper has the ACLs of now alone"),
        ("sqlite:///no/such.db", "there is no ACL store"),
    ],
)
def test_a_store_that_has_no_history_is_an_error(run, url, said):
    status, _, err = run("history", "--store", url)
    assert status == 2
    assert said in err
    assert said in run("acls", "--store", url)[1]


def test_a_file_needs_no_login(run, path):
    words = ("--store", f"sqlite:///{path}", "--command-config", "client.properties")
    said = "--command-config is for a store that is a topic"
    assert said in run("history", *words)[2]
    assert said in run("acls", *words)[1]


@pytest.mark.parametrize(("word", "said"), [("topic", "the name of a TOPIC"), ("x:y", "'x' is")])
def test_a_resource_without_its_type_or_name_is_refused(run, path, word, said):
    status, _, err = run("history", "--store", f"sqlite:///{path}", "--resource", word)
    assert status == 2
    assert said in err


def test_a_store_without_a_history_says_where_it_begins(run, path):
    async def change():
        store = SqliteStore(path, history_changes=0)
        await store.open()
        for chunk in [[chunk async for chunk in store.load()]]:
            assert chunk
        many = [allow(name=f"topic-{number}") for number in range(19_999)]
        await store.apply(many, [], origin(20))
        await store.apply([], many, origin(30))
        await store.close()

    asyncio.run(change())
    _, out, err = run("history", "--store", f"sqlite:///{path}")
    assert out == f"{GRANTED}{ORD}\n{BROKER}{EVE}\n{BROKER}{TAB}\n"
    assert "the history begins at position 40003, 2100-01-01T12:30:00.000Z; of before" in err


def test_a_running_broker_keeps_who_asked_it_for_changes(run, broker: Broker):
    address = broker.listeners["PLAINTEXT"]
    with open_session(read_addresses(address), read_settings(None)) as session:
        create_acls(session, [allow()])
        delete_acls(session, [AclFilter()])
    _, out, _ = run("history", "--store", f"sqlite:///{broker.store}")
    who = r"\d+ 20\S+Z User:ANONYMOUS from 127\.0\.0\.1"
    first, second = out.splitlines()
    assert re.fullmatch(f"{who} granted: {re.escape(ORDERS)}", first)
    assert re.fullmatch(f"{who} revoked: {re.escape(ORDERS)}", second)
    position = first.split()[0]
    assert run("acls", "--store", f"sqlite:///{broker.store}", "--at", position)[1] == LISTED_ORDERS
