"""Lines of our own audit log, honest and mangled."""

import json
import random
from typing import Any

RECORD: dict[str, Any] = {
    "timestamp": "2026-11-21T07:48:42.328104Z",
    "level": "debug",
    "event": "authorization",
    "cluster_id": "abc",
    "node_id": 1,
    "listener": "SASL",
    "principal": "User:alice",
    "host": "127.0.0.1",
    "operation": "WRITE",
    "resource_type": "TOPIC",
    "pattern_type": "LITERAL",
    "resource_name": "orders",
    "resource_ref_count": 4,
    "api_name": "Produce",
    "api_version": 9,
    "client_id": "app",
    "correlation_id": 7,
    "allowed": True,
    "rule": "MatchingAcl",
    "acl": {
        "resource_type": "TOPIC",
        "resource_name": "5",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "WRITE",
        "permission_type": "ALLOW",
    },
}


def record(**values: Any) -> str:
    """A line with other values for some keys."""
    return json.dumps(RECORD | values, separators=(",", ":"))


def at_position(acls: Any, **values: Any) -> str:
    """A line that names the position of the ACLs, where the broker does."""
    found = RECORD | values
    acl = found.pop("acl")
    place = [*found].index("rule") + 1
    keys = [*found.items()]
    named = dict([*keys[:place], ("acls", acls), ("acl", acl), *keys[place:]])
    return json.dumps(named, separators=(",", ":"))


def without(key: str) -> str:
    return json.dumps({k: v for k, v in RECORD.items() if k != key}, separators=(",", ":"))


RECORDS = [
    record(),
    record(allowed=False, rule="DefaultDeny", acl=None),
    record(allowed=True, rule="SuperUser", acl=None, level="trace"),
    record(allowed=False, rule="MatchingAcl"),
    record(principals=["User:alice", "Group:a,b"]),
    record(principals=["User:alice", "Group:a", 'Role:x"\\\u00fc\n', "User:alice"]),
    record(principals=["User:alice", "Group:a\0b"]),
    record(principals=["User:alice"]),
    record(principals=None),
    record(principal="User:a\0b", principals=["User:a\0b", "Group:x"]),
    record(principal="User:", host="::ffff:10.0.0.1"),
    record(host="0:0:0:0:0:0:0:1"),
    record(host="name/10.0.0.1:9092"),
    record(resource_name=None, client_id=None),
    record(resource_name="", client_id=""),
    record(resource_name="5", client_id="true", listener="{}"),
    record(resource_name='x","allowed":true}{"timestamp":"'),
    record(resource_name='"client_id": 5 } x', client_id='"principals":[5]'),
    record(resource_name="x\n[2026] \u2028\x00\x1b\x7f"),
    record(resource_name="\u00fc\U0001f600"),
    record(resource_name=None, client_id='{"resource_name":null,'),
    record(resource_ref_count=0),
    record(resource_ref_count=2**31 - 1),
    record(api_name="ApiKey99", unknown_key=[1, {"a": None}], other={"principal": 5}),
    record(timestamp="2026-12-31T23:59:59.999999Z"),
    record(client_id="x" * 5_000),
    record(acls=0),
    record(acls=2**63 - 1),
    record(acls=None),
    at_position(48213),
    at_position(48213, acl=None, rule="SuperUser"),
    at_position(9, first_acls=3, count=2, last_timestamp="2026-11-21T07:48:43.328104Z"),
    at_position(9, first_acls=0, acl=None, count=2, last_timestamp="2026-11-21T07:48:43.328104Z"),
    at_position(9, first_acls=2**63 - 1),
    record(first_acls=7),
    record(first_acls=None),
    record(count=1, last_timestamp="2026-11-21T07:48:42.328104Z"),
    record(count=2**31 - 1, last_timestamp="2026-11-21T23:59:59.999999Z", nearest=[{"a": 1}]),
    record(count=None, last_timestamp=None),
    record(event="authorization", shortened={"client_id": 32767}, other_client_ids=True),
    json.dumps(RECORD, separators=(" , ", " : ")),
    json.dumps(RECORD | {"client_id": None}, separators=(" , ", " : ")),
    json.dumps(RECORD | {"resource_name": "\u00fc\u2028\U0001f600"}, ensure_ascii=False),
    json.dumps(dict(reversed(RECORD.items()))),
    json.dumps(dict(reversed((RECORD | {"client_id": None, "resource_name": None}).items()))),
    f"  {record()}\t",
    f"{record()}\r",
    record().replace('"principal"', '"\\u0070rincipal"'),
    record()[:-1] + ',"node_id":2,"node_id":"x"}',
]

NOT_RECORDS = [
    *("", "x", "5", "[]", "{}", "null", "[{}]", "{}{}", "{", "}"),
    f"[{record()}]",
    record()[:-1],
    record()[: len(record()) // 2],
    record().replace('"', "'"),
    f"{record()}{record()}",
    f"{record()},{record()}",
    f"{record()} {record()}",
    f"{record()}}}",
    f"{record()} x",
    f"{record()}\0{record()}",
    f"{record()[:90]}{record()}",
    record(event="request"),
    *map(without, sorted(RECORD.keys() - {"node_id", "api_version", "correlation_id", "acl"})),
    without("client_id").replace('"acl":{', '"acl":{"client_id":null,'),
    without("client_id").replace("{", '{"x,\\"client_id":null,', 1),
    without("resource_name").replace("{", '{"x":"\\"resource_name\\":null",', 1),
    record()[:-1] + ',"principal":"User:bob"}',
    record()[:-1] + ',"client_id":null}',
    record(timestamp="2026-11-21 07:48:42"),
    record(timestamp="2026-02-30T07:48:42.328104Z"),
    record(timestamp="2026-13-30T07:48:42.328104Z"),
    record(timestamp="2026-11-21T07:48:60.328104Z"),
    record(timestamp="2026-11-21T24:00:00.000000Z"),
    record(timestamp="2026-11-21T07:48:42.328104Z\n"),
    record(timestamp="2026-11-21T07:48:42.328104+01:00"),
    record(timestamp="1999-11-21T07:48:42.328104Z"),
    record(timestamp="\u0662026-11-21T07:48:42.328104Z"),
    record(timestamp=1795247322),
    record(level="DEBUG"),
    record(acls=-1),
    record(acls=2**63),
    record(acls=True),
    record(acls="5"),
    record(acls=5.0),
    record(acls=[]),
    at_position(-1),
    record(first_acls=-1),
    record(first_acls="5"),
    at_position(9, first_acls=2**63, count=2, last_timestamp="2026-11-21T07:48:43.328104Z"),
    at_position(9, first_acls=True, count=2, last_timestamp="2026-11-21T07:48:43.328104Z"),
    at_position(5)[:-1] + ',"acls":5}',
    record(principal="alice"),
    record(principal="A user:alice"),
    record(principal=""),
    record(principal=5),
    record(principal={"a": "b:c"}),
    record(principals=[]),
    record(principals=["User:bob"]),
    record(principals=["User:alice", None]),
    record(principals=["User:alice", 5]),
    record(principals=["User:alice", "bob"]),
    record(principals=["User:alice", ""]),
    record(principals="User:alice"),
    record(principals={}),
    record(principals=["User:alice", {"a": 1}]),
    record(principals=["User:alice", ["User:bob"]]),
    record(principals=["User:alice", True]),
    record(principal="User:a\0User:a", principals=["User:b"]),
    record(principal="User:a\0User:a", principals=["User:a", "User:b"]),
    record(host=""),
    record(cluster_id="a\0b"),
    record(cluster_id="c" * 300),
    record(host="not an address"),
    record(host=127.5),
    record(operation="Write"),
    record(operation="ALL"),
    record(resource_type="ANY"),
    record(pattern_type="PREFIXED"),
    record(resource_name=5),
    record(resource_name=-5.5),
    record(resource_name=True),
    record(resource_name=["orders"]),
    record(resource_name={"a": 1}),
    record(client_id=5),
    record(client_id=False),
    record(listener=5),
    record(listener=""),
    record(cluster_id=5),
    record(cluster_id=""),
    record(api_name=5),
    record(api_name=""),
    record(resource_ref_count=-1),
    record(resource_ref_count="4"),
    record(resource_ref_count=4.0),
    record(resource_ref_count=4.5),
    record(resource_ref_count=True),
    record(resource_ref_count=2**31),
    record(resource_ref_count=2**70),
    record(allowed="true"),
    record(allowed=1),
    record(allowed=None),
    record(rule="Mine"),
    record(rule="DefaultDeny"),
    record(rule="SuperUser", allowed=False),
    record(rule="DefaultAllow", allowed=False),
    record(count=2),
    record(last_timestamp="2026-11-21T07:48:43.000000Z"),
    record(count=0, last_timestamp="2026-11-21T07:48:43.000000Z"),
    record(count=2**31, last_timestamp="2026-11-21T07:48:43.000000Z"),
    record(count=2.0, last_timestamp="2026-11-21T07:48:43.000000Z"),
    record(count=True, last_timestamp="2026-11-21T07:48:43.000000Z"),
    record(count="2", last_timestamp="2026-11-21T07:48:43.000000Z"),
    record(count=2, last_timestamp="2026-11-21T07:48:42.328103Z"),
    record(count=2, last_timestamp="2026-11-22T00:00:00.000000Z"),
    record(count=2, last_timestamp="2026-11-21"),
    record(count=2, last_timestamp=5),
    record(event="left_out", denied=3, allowed=0),
    record().replace('"app"', '"\\ud800"'),
    record().replace('"app"', '"\\udc00x"'),
    record().replace('"app"', '"\\x"'),
    record().replace('"app"', '"a\nb"').replace("\n", "\x01"),
    record().replace('"node_id":1', '"node_id":01'),
    record().replace('"node_id":1', '"node_id":"\\udc00"'),
    record().replace('"node_id":1', f'"node_id":{"[" * 3_000}{"]" * 3_000}'),
]

_PIECES = [
    *('"', "\\", '\\"', "{", "}", "[", "]", ",", ":", " ", "\t", "\r", "\0", "}{", "null", "true"),
    *("5", "-", "0", "1e400", "NaN", "\\u0000", "\\ud800", "\\udc00", "\\ud83d\\ude00", "\u00fc"),
    *('"client_id":null,', '"acl":{"resource_name":null},', '"event":"authorization",', "User:b"),
    *('{"x":' * 20, "[" * 300, "9" * 5_000, "\u2028", "\x01", "\x7f", "/**/"),
]
_BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\x80"]


def mangled(randomly: random.Random) -> bytes:
    """A line with up to three changes: pieces put in, left out, exchanged or doubled."""
    text = randomly.choice(RECORDS if randomly.random() < 0.8 else NOT_RECORDS)
    for _ in range(randomly.randrange(4)):
        change = randomly.randrange(5)
        at = randomly.randrange(len(text) + 1)
        if change == 0:
            text = text[:at] + randomly.choice(_PIECES) + text[at:]
        elif change == 1:
            text = text[:at] + text[at + randomly.randrange(1, 20) :]
        elif change == 2:
            text = text.replace(randomly.choice(_PIECES), randomly.choice(_PIECES), 1)
        elif change == 3:
            end = at + randomly.randrange(len(text) + 1)
            text = text[:end] + text[at:]
        else:
            key = f'"{randomly.choice(list(RECORD))}"'
            text = text.replace(key, f'"{randomly.choice(list(RECORD))}"', 1)
    data = text.replace("\n", "").encode()
    if randomly.random() < 0.05:
        at = randomly.randrange(len(data) + 1)
        data = data[:at] + randomly.choice(_BYTES) + data[at:]
    return data


_VALUES: dict[str, list[Any]] = {
    "count": [1, 5, 0, None],
    "last_timestamp": ["2026-11-21T08:00:00.000000Z", "2026-11-21T07:00:00.000000Z", None],
    "timestamp": ["2026-02-28T23:59:59.000001Z", "2026-02-29T00:00:00.000000Z", "2024-02-29", None],
    "level": ["info", "trace", "INFO", "", None],
    "event": ["authorization", "Authorization", None],
    "cluster_id": ["abc", "d e", "", None],
    "listener": ["SSL", "", None],
    "principal": ["User:alice", "User:", "User:\u00fc b", "alice", "", "Us er:a", "a\n:b", None],
    "principals": [["User:alice"], ["User:alice", "Group:a"], [], ["User:"], ["User:", "x"], None],
    "host": ["::1", "10.0.0.01", "1.2.3.4", "x", "", None],
    "operation": ["READ", "DESCRIBE_CONFIGS", "read", "ANY", None],
    "resource_type": ["GROUP", "CLUSTER", "group", "UNKNOWN", None],
    "pattern_type": ["LITERAL", "MATCH", None],
    "resource_name": ["", "\u2028", "x" * 249, None],
    "resource_ref_count": [0, -1, 2**31 - 1, 2**31, 2**62, None],
    "api_name": ["Fetch", "", None],
    "client_id": ["", "\0", None],
    "allowed": [True, False, None],
    "rule": ["SuperUser", "DefaultDeny", "DefaultAllow", "MatchingAcl", "x", None],
}


def varied(randomly: random.Random) -> bytes:
    """A line of right types, with up to three other values, keys left out and another order."""
    found = dict(RECORD)
    for key in randomly.sample(list(_VALUES), randomly.randrange(4)):
        found[key] = randomly.choice(_VALUES[key])
    if randomly.random() < 0.1:
        del found[randomly.choice(list(found))]
    if randomly.random() < 0.3:
        found = dict(randomly.sample(list(found.items()), len(found)))
    separators = (",", ":") if randomly.random() < 0.7 else (", ", ": ")
    return json.dumps(found, separators=separators, ensure_ascii=randomly.random() < 0.8).encode()
