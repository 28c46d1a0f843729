"""Transactions are put together again, whatever others write in between."""

from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.kafka.messages import (
    Assembly,
    Message,
    NewerFormat,
    UnreadableMessage,
    key_of,
    messages_of,
    read,
)
from tests.acl.examples import allow, deny
from tests.stores.origins import ORIGIN
from tests.support.tables import check_each


def settings(transaction, added=(), removed=(), records=None):
    """What the messages of a transaction say, in their order."""
    written = messages_of(
        added, removed, records or {}, ORIGIN, transaction, with_format=transaction == "first"
    )
    return [read(message) for message in written]


def test_what_is_written_is_read():
    records = {("scram", "zoë\0"): "1", ("token", "t"): None}
    acls = [allow(name='a"b'), deny("User:é\0")]
    found = settings("first", acls, [allow("User:bob")], records)
    assert [each.version for each in found[:1]] == [1]
    assert [(each.binding, each.is_removed) for each in found[1:4]] == [
        (allow("User:bob"), True),
        (acls[0], False),
        (acls[1], False),
    ]
    assert {each.record: each.value for each in found[4:]} == records
    assert {each.transaction for each in found} == {("first", 6)}
    assert {each.origin for each in found} == {ORIGIN}


def test_an_acl_has_one_key_and_no_other_has_it():
    acls = [allow(), deny(), allow(name="Orders"), allow(host="h"), allow("User:b")]
    assert len({key_of(acl) for acl in acls}) == len(acls)
    assert key_of(allow()) == key_of(AclBinding(*allow()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"{}"),
        (b"no JSON", b"{}"),
        (b"[" * 10_000, b"{}"),
        (b'{"acl":1}', b"{}"),
        (b'["acl"]', b"{}"),
        (b'["acl","TOPIC","","LITERAL","User:a","*","READ","ALLOW"]', b"{}"),
        (b'["acl","TOPIC","t","ANY","User:a","*","READ","ALLOW"]', b"{}"),
        (b'["acl","TOPIC","t","LITERAL","User:a","*","SING","ALLOW"]', b"{}"),
        (b'["acl","TOPIC","t","LITERAL","User:a","*","READ","ALLOW"]', b"no JSON"),
        (b'["acl","TOPIC","t","LITERAL","User:a","*","READ","ALLOW"]', b"[]"),
        (b'["record","scram"]', b"{}"),
        (b'["record","scram","a"]', b'{"value":1}'),
        (b'["format"]', b"{}"),
        (b'["other"]', b"{}"),
        # Other keys of the same thing, to Kafka.
        (b'["acl", "TOPIC","t","LITERAL","User:a","*","READ","ALLOW"]', b"{}"),
        (b'["acl","TOPIC","\\u0074","LITERAL","User:a","*","READ","ALLOW"]', b"{}"),
        (b'["acl","TOPIC","\\ud800","LITERAL","User:a","*","READ","ALLOW"]', b"{}"),
        (b'["acl","TOPIC", "t","LITERAL","User:a","*","READ","ALLOW"]', None),
    ],
)
def test_what_is_no_message_of_ours_is_refused(key, value):
    with pytest.raises(UnreadableMessage):
        read(Message(key, value, ()))


@pytest.mark.parametrize(
    ("name", "value"),
    [("transaction", b"x"), ("transaction", b"x " + b"9" * 5000), ("origin", None)],
)
def test_headers_that_are_not_ours_are_refused(name, value):
    with pytest.raises(UnreadableMessage):
        read(Message(key_of(allow()), None, ((name, value),)))


def test_a_newer_format_is_refused():
    with pytest.raises(NewerFormat, match="version 2 of the messages"):
        read(Message(b'["format"]', b'{"version":2}', ()))


def taken(*messages):
    """What an assembly tells of messages with their offsets."""
    assembly = Assembly()
    return assembly, [
        (whole.position, {each.binding: not each.is_removed for each in whole.settings})
        for offset, setting in messages
        if (whole := assembly.take(offset, setting)) is not None
    ]


def test_a_transaction_is_told_when_it_is_whole():
    one = settings("one", [deny(), allow()])
    other = settings("other", [allow("User:bob")])
    assembly, found = taken((0, one[0]), (1, other[0]), (3, one[1]))
    assert found == [(2, {allow("User:bob"): True}), (4, {deny(): True, allow(): True})]
    assert not assembly.unfinished


def test_each_acl_ends_up_as_its_last_message_says():
    """As after compaction, and not as the transaction that ends last."""
    long = settings("long", [allow(), deny()])
    short = settings("short", (), [allow()])
    _, found = taken((0, long[0]), (1, short[0]), (2, long[1]))
    assert found == [(2, {allow(): False}), (3, {deny(): True})]


async def test_what_compaction_has_left_of_a_transaction_counts():
    long = settings("long", [allow(), deny(), allow("User:bob")])
    assembly, found = taken((0, long[0]), (5, long[2]))
    assert found == []
    assert assembly.unfinished == {"long"}
    whole = await assembly.rest({"long"}, 8)
    assert whole.position == 8
    assert [each.binding for each in whole.settings] == [allow(), allow("User:bob")]
    assert not assembly.unfinished


def test_however_transactions_are_mixed_each_acl_ends_up_as_its_last_message_says():
    check_each(range(300), _check_mixed)


def _check_mixed(seed):
    random = Random(seed)
    written = []
    for number in range(random.randint(1, 4)):
        some = random.sample([allow(name=f"topic-{each}") for each in range(4)], 3)
        cut = random.randint(0, 3)
        written.append(iter(settings(f"transaction-{number}", some[:cut], some[cut:])))
    order = [number for number in range(len(written)) for _ in range(3)]
    random.shuffle(order)
    assembly, found, expected = Assembly(), {}, {}
    for offset, number in enumerate(order):
        setting = next(written[number])
        expected[setting.binding] = not setting.is_removed
        whole = assembly.take(offset, setting)
        for each in whole.settings if whole else ():
            found[each.binding] = not each.is_removed
    assert found == expected
    assert not assembly.unfinished
