"""Lines as the authorizers of the Kafka versions write them, honest and forged."""

import random

from aclbroker.pipeline.ingest import kafka_line as kafka

CLOCK = "2026-11-21 07:48:42,328"


def line(
    *,
    head: str = f"[{CLOCK}] INFO",
    principal: str = "User:alice",
    verdict: str = "is Denied operation",
    operation: str = "DESCRIBE",
    host: str = "127.0.0.1",
    resource: str = "Topic:LITERAL:orders.eu",
    request: str = " for request = Metadata with resourceRefCount = 1",
    rule: str = " based on rule DefaultDeny",
    tail: str = kafka.TAIL,
) -> str:
    """A line of Kafka 4.3, or of another if its parts are given."""
    return (
        f"{head} Principal = {principal} {verdict} = {operation} from host = {host} "
        f"on resource = {resource}{request}{rule}{tail}"
    )


def allowed_line(brackets: str = "[]", permission: str = "ALLOW", **parts: str) -> str:
    """A line whose rule names an ACL."""
    rule = (
        f" based on rule MatchingAcl(acl=StandardAcl{brackets[0]}resourceType=TOPIC, "
        "resourceName=orders, patternType=PREFIXED, principal=User:CN=app one,OU=Dev is Denied, "
        f"host=*, operation=READ, permissionType={permission}{brackets[1]})"
    )
    verdict = "is Allowed operation" if permission == "ALLOW" else "is Denied operation"
    return line(**{"verdict": verdict, "rule": rule} | parts)


def zookeeper_line(**parts: str) -> str:
    """A line of AclAuthorizer, Kafka 2.4 to 3.9."""
    return line(**{"verdict": "is Allowed Operation", "operation": "Describe", "rule": ""} | parts)


def simple_line(**parts: str) -> str:
    """A line of SimpleAclAuthorizer, Kafka 0.9 to 2.3."""
    return zookeeper_line(**{"request": ""} | parts)


FORGED = line(
    head="[2026-11-21 00:00:00,000] DEBUG",
    principal="User:mallory",
    verdict="is Allowed operation",
    operation="WRITE",
    rule=" based on rule SuperUser",
)

NOT_RECORDS = {
    "": kafka.Reason.HEAD,
    "[2026-11-21 07:48:42,328] INFO Starting (kafka.server.KafkaServer)": kafka.Reason.HEAD,
    f" {line()}": kafka.Reason.HEAD,
    f"x{line()}": kafka.Reason.HEAD,
    line(head=f"[{CLOCK}] FATAL"): kafka.Reason.HEAD,
    line(head="[1999-11-21 07:48:42,328] INFO"): kafka.Reason.HEAD,
    line(head="[2026-11-21 07:48:42.328] INFO"): kafka.Reason.HEAD,
    '{"timestamp":"2026-11-21T07:48:42.328104Z","event":"authorization"}': kafka.Reason.HEAD,
    # A group id with a line break: the line before it, a forged one, and what is left behind it.
    line(resource="Group:LITERAL:x", request="", rule="", tail=""): kafka.Reason.CUT_OFF,
    f"{FORGED} for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    f"{kafka.TAIL}": kafka.Reason.WORDS,
    f"{FORGED} x": kafka.Reason.CUT_OFF,
    f"{FORGED}{kafka.TAIL}": kafka.Reason.RULE,
    f"{FORGED}\r\r": kafka.Reason.CUT_OFF,
    f"{line(resource='Group:LITERAL:x')}\r{FORGED}": kafka.Reason.WORDS,
    f"{line()}{FORGED}": kafka.Reason.WORDS,
    # A group id with the words of a record.
    line(
        resource="Group:LITERAL:g for request = Fetch with resourceRefCount = 1 based on rule X"
    ): kafka.Reason.WORDS,
    line(principal="User:a is Allowed operation = READ from host = 1.1.1.1"): kafka.Reason.WORDS,
    line(principal="User:a from host ="): kafka.Reason.WORDS,
    line(principal="from host = User:a"): kafka.Reason.WORDS,
    allowed_line(resource="Topic:LITERAL:a based on rule SuperUser"): kafka.Reason.WORDS,
    line(rule=""): kafka.Reason.WORDS,
    line(request=""): kafka.Reason.WORDS,
    zookeeper_line(rule=" based on rule SuperUser"): kafka.Reason.WORDS,
    line(verdict="is denied operation"): kafka.Reason.WORDS,
    line(principal="User:alice", host="").replace("host = ", "host ="): kafka.Reason.WORDS,
    line(head="[2026-02-30 07:48:42,328] INFO"): kafka.Reason.TIME,
    line(head="[2026-11-21 24:00:00,000] INFO"): kafka.Reason.TIME,
    line(head="[2026-11-21 07:48:60,000] INFO"): kafka.Reason.TIME,
    line(principal="alice"): kafka.Reason.PRINCIPAL,
    line(principal="A user:alice"): kafka.Reason.PRINCIPAL,
    line(operation="Describe"): kafka.Reason.OPERATION,
    line(operation="ALL"): kafka.Reason.OPERATION,
    line(operation=""): kafka.Reason.OPERATION,
    zookeeper_line(operation="DESCRIBE"): kafka.Reason.OPERATION,
    line(host="some where"): kafka.Reason.HOST,
    line(host=""): kafka.Reason.HOST,
    line(resource="Topic:orders"): kafka.Reason.RESOURCE,
    line(resource="Topic:PREFIXED:orders"): kafka.Reason.RESOURCE,
    line(resource="Topics:LITERAL:orders"): kafka.Reason.RESOURCE,
    line(resource="Topic"): kafka.Reason.RESOURCE,
    zookeeper_line(resource="Topic:orders"): kafka.Reason.RESOURCE,
    line(request=" for request = Fetching with resourceRefCount = 1"): kafka.Reason.API,
    line(request=" for request = Fetch with resourceRefCount = -1"): kafka.Reason.COUNT,
    line(request=" for request = Fetch with resourceRefCount = 9999999999"): kafka.Reason.COUNT,
    line(request=" for request = Fetch with resourceRefCount = \u0661"): kafka.Reason.COUNT,
    line(rule=" based on rule Super"): kafka.Reason.RULE,
    allowed_line(brackets="[)"): kafka.Reason.RULE,
    line(rule=" based on rule SuperUser"): kafka.Reason.CONTRADICTION,
    allowed_line(verdict="is Denied operation"): kafka.Reason.CONTRADICTION,
    allowed_line(permission="DENY", verdict="is Allowed operation"): kafka.Reason.CONTRADICTION,
}

RECORDS = [
    line(),
    f"{line()}\r",
    line(principal="User:CN=app one,OU=Dev,O=Acme is Denied"),
    line(principal="User:ünï,\u2028 \\ß"),
    line(principal="User:"),
    line(host="0:0:0:0:0:0:0:1"),
    line(host="fe80:0:0:0:0:0:0:1%eth0"),
    line(resource="Group:LITERAL:"),
    line(resource="Group:LITERAL:a:LITERAL:b\tc\x00\x1b\r\x85d"),
    line(resource="TransactionalId:LITERAL: no such, x (kafka.authorizer.logger)"),
    line(request=" for request = Fetch with resourceRefCount = 0"),
    line(rule=" based on rule DefaultAllow", verdict="is Allowed operation"),
    line(rule=" based on rule MatchingAcl(acl=null)"),
    allowed_line(),
    allowed_line("()"),
    allowed_line(permission="DENY"),
    zookeeper_line(),
    zookeeper_line(verdict="is Denied Operation", operation="IdempotentWrite"),
    simple_line(),
    simple_line(resource="Topic:orders:a"),
    simple_line(resource="Cluster:kafka-cluster"),
]

_PIECES = [
    *(*kafka.WORDS, kafka.TAIL, " ", "\r", ":", "=", "x", "LITERAL:", "ALLOW", "\x00", "ü"),
    *("Topic:LITERAL:t", "User:a", "READ", "Read", "127.0.0.1", "Fetch", "1", "DefaultDeny"),
    *(" is Denied", " host =", "operation = READ", "based on rule SuperUser", "\ufffd"),
]


def mangled(random: random.Random) -> bytes:
    """A line with up to three changes: pieces put in, left out, or exchanged."""
    text = random.choice(RECORDS if random.random() < 0.7 else list(NOT_RECORDS))
    for _ in range(random.randrange(4)):
        change = random.randrange(4)
        at = random.randrange(len(text) + 1)
        piece = random.choice(_PIECES)
        if change == 0:
            text = text[:at] + piece + text[at:]
        elif change == 1:
            text = text[:at] + text[at + random.randrange(1, 9) :]
        elif change == 2:
            text = text.replace(random.choice(_PIECES), piece, 1)
        else:
            text = text.replace(random.choice(kafka.WORDS), random.choice(kafka.WORDS), 1)
    data = text.replace("\n", "").encode()
    if random.random() < 0.03:
        at = random.randrange(len(data) + 1)
        data = (
            data[:at] + random.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80"]) + data[at:]
        )
    return data.replace(b"\n", b"")
