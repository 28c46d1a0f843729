"""Lines as the authorizers of the Kafka versions write them, honest and forged."""

import random

from aclbroker.pipeline.ingest.kafka_line import TAIL, WORDS, KafkaReason

CLOCK = "2026-11-21 07:48:42,328"


WRAPPED = "OAuthKafkaPrincipal(User:x, groups: null, session: 382392697, token: abcd**wxyz)"
"""A principal in the form in which Strimzi's OAuth prints it."""


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
    tail: str = TAIL,
) -> str:
    """A line of Kafka 4.3, or of another if its parts are given."""
    return (
        f"{head} Principal = {principal} {verdict} = {operation} from host = {host} "
        f"on resource = {resource}{request}{rule}{tail}"
    )


def allowed_line(brackets: str = "[]", permission: str = "ALLOW", **parts: str) -> str:
    """Return a line whose rule prints an ACL of the line's principal."""
    principal = parts.get("principal", "User:alice")
    rule = (
        f" based on rule MatchingAcl(acl=StandardAcl{brackets[0]}resourceType=TOPIC, "
        f"resourceName=orders, patternType=PREFIXED, principal={principal}, "
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
    "": KafkaReason.OTHER,
    "[2026-11-21 07:48:42,328] INFO Starting (kafka.server.KafkaServer)": KafkaReason.OTHER,
    "[2026-11-21 07:48:42,328] WARN [KafkaServer id=1] x = y (kafka.Log)": KafkaReason.OTHER,
    "java.lang.IllegalStateException: [2026] No space": KafkaReason.OTHER,
    "\tat kafka.server.KafkaApis.handle(KafkaApis.scala:80)": KafkaReason.OTHER,
    '{"level":"INFO","logger":"kafka.Log","message":"Starting"}': KafkaReason.OTHER,
    # AclAuthorizer writes these lines at DEBUG beside a decision; the last one is cut off.
    f"[{CLOCK}] DEBUG No acl found for resource ResourcePattern(resourceType=TOPIC, name=a, "
    f"patternType=LITERAL), authorized = false{TAIL}": KafkaReason.OLD_DEBUG,
    f"[{CLOCK}] DEBUG principal = User:admin is a super user, allowing operation without "
    f"checking acls.{TAIL}": KafkaReason.OLD_DEBUG,
    f"[{CLOCK}] DEBUG operation = READ on resource = ResourcePattern(resourceType=TOPIC, name=a, "
    "patternType=LITERAL) from host = 10.0.0.1 is ALLOW based on acl = User:a has ALLOW permission "
    f"for operations: READ from hosts: *{TAIL}": KafkaReason.OLD_DEBUG,
    f"[{CLOCK}] DEBUG No acl found for resource ResourcePattern(resourceType=GROUP, "
    "name=x": KafkaReason.CUT_OFF,
    # A broker was killed in mid-line. After its restart it appended to some of these lines.
    "[2026-11-21 07:4": KafkaReason.HEAD,
    "[2026-11-21 07:48:42,328] DEBU": KafkaReason.HEAD,
    "[2026-11-21 07:48:42,328] DEBUG Princip": KafkaReason.HEAD,
    f"[2026-11-21 07:48:42,328] DEBUG Prin[{CLOCK}] INFO Starting (kafka.Log)": KafkaReason.HEAD,
    f"[2026-11-21[{CLOCK}] INFO Starting (kafka.Log)": KafkaReason.HEAD,
    "is Allowed operation = READ from host = 10.0.0.1 on resource = Topic:LITERAL:a": (
        KafkaReason.HEAD
    ),
    f" {line()}": KafkaReason.HEAD,
    f"x{line()}": KafkaReason.HEAD,
    line(head=f"[{CLOCK}] FATAL"): KafkaReason.HEAD,
    line(head="[1999-11-21 07:48:42,328] INFO"): KafkaReason.HEAD,
    line(head="[2026-11-21 07:48:42.328] INFO"): KafkaReason.HEAD,
    '{"timestamp":"2026-11-21T07:48:42.328104Z","event":"authorization"}': KafkaReason.HEAD,
    # A group id with a line break: the line before it, a forged one, and what is left behind it.
    line(resource="Group:LITERAL:x", request="", rule="", tail=""): KafkaReason.CUT_OFF,
    f"{FORGED} for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    f"{TAIL}": KafkaReason.WORDS,
    f"{FORGED} x": KafkaReason.CUT_OFF,
    f"{FORGED}{TAIL}": KafkaReason.RULE,
    f"{FORGED}\r\r": KafkaReason.CUT_OFF,
    f"{line(resource='Group:LITERAL:x')}\r{FORGED}": KafkaReason.WORDS,
    f"{line()}{FORGED}": KafkaReason.WORDS,
    # A group id with the words of a record.
    line(
        resource="Group:LITERAL:g for request = Fetch with resourceRefCount = 1 based on rule X"
    ): KafkaReason.WORDS,
    line(principal="User:a is Allowed operation = READ from host = 1.1.1.1"): KafkaReason.WORDS,
    line(principal="User:a from host ="): KafkaReason.WORDS,
    line(principal="from host = User:a"): KafkaReason.WORDS,
    allowed_line(resource="Topic:LITERAL:a based on rule SuperUser"): KafkaReason.WORDS,
    line(rule=""): KafkaReason.WORDS,
    line(request=""): KafkaReason.WORDS,
    zookeeper_line(rule=" based on rule SuperUser"): KafkaReason.WORDS,
    line(verdict="is denied operation"): KafkaReason.WORDS,
    line(principal="User:alice", host="").replace("host = ", "host ="): KafkaReason.WORDS,
    line(head="[2026-02-30 07:48:42,328] INFO"): KafkaReason.TIME,
    line(head="[2026-11-21 24:00:00,000] INFO"): KafkaReason.TIME,
    line(head="[2026-11-21 07:48:60,000] INFO"): KafkaReason.TIME,
    line(principal="alice"): KafkaReason.PRINCIPAL,
    line(principal="A user:alice"): KafkaReason.PRINCIPAL,
    line(operation="Describe"): KafkaReason.OPERATION,
    line(operation="ALL"): KafkaReason.OPERATION,
    line(operation=""): KafkaReason.OPERATION,
    zookeeper_line(operation="DESCRIBE"): KafkaReason.OPERATION,
    line(host="some where"): KafkaReason.HOST,
    line(host=""): KafkaReason.HOST,
    line(resource="Topic:orders"): KafkaReason.RESOURCE,
    line(resource="Topic:PREFIXED:orders"): KafkaReason.RESOURCE,
    line(resource="Topics:LITERAL:orders"): KafkaReason.RESOURCE,
    line(resource="Topic"): KafkaReason.RESOURCE,
    zookeeper_line(resource="Topic:orders"): KafkaReason.RESOURCE,
    line(request=" for request = Fetching with resourceRefCount = 1"): KafkaReason.API,
    line(request=" for request = Fetch with resourceRefCount = -1"): KafkaReason.COUNT,
    line(request=" for request = Fetch with resourceRefCount = 9999999999"): KafkaReason.COUNT,
    line(request=" for request = Fetch with resourceRefCount = \u0661"): KafkaReason.COUNT,
    line(rule=" based on rule Super"): KafkaReason.RULE,
    allowed_line(brackets="[)"): KafkaReason.RULE,
    line(rule=" based on rule SuperUser"): KafkaReason.CONTRADICTION,
    allowed_line(verdict="is Denied operation"): KafkaReason.CONTRADICTION,
    allowed_line(permission="DENY", verdict="is Allowed operation"): KafkaReason.CONTRADICTION,
    allowed_line().replace("principal=User:alice", "principal=User:bob"): KafkaReason.ANOTHERS,
    allowed_line(principal="User:alice (7)").replace(
        "principal=User:alice (7)", "principal=User:alice"
    ): KafkaReason.ANOTHERS,
    line(principal="TenantPrincipal(User:x, tenant: 7)"): KafkaReason.PRINCIPAL,
    line(principal="Principal[type=User, name=x]:y"): KafkaReason.PRINCIPAL,
    line(host="127.0.0.256"): KafkaReason.HOST,
    line(host="dead.beef"): KafkaReason.HOST,
    line(host="10.0.0.0/8"): KafkaReason.HOST,
}

RECORDS = [
    line(),
    f"{line()}\r",
    f"{line()} ",
    f"{zookeeper_line()} \t\r",
    line(principal="User:CN=app one,OU=Dev,O=Acme is Denied"),
    line(principal="User:ünï,\u2028 \\ß"),
    line(principal="User:"),
    line(host="0:0:0:0:0:0:0:1"),
    line(host="fe80:0:0:0:0:0:0:1%eth0"),
    line(host="/10.0.0.1"),
    line(host="name/10.0.0.1:9092"),
    line(host="/[::1]:9092"),
    line(resource="Group:LITERAL:"),
    line(resource="Group:LITERAL:a:LITERAL:b\tc\x00\x1b\r\x85d"),
    line(resource="TransactionalId:LITERAL: no such, x (kafka.authorizer.logger)"),
    line(request=" for request = Fetch with resourceRefCount = 0"),
    line(rule=" based on rule DefaultAllow", verdict="is Allowed operation"),
    line(rule=" based on rule MatchingAcl(acl=null)"),
    allowed_line(),
    allowed_line("()"),
    allowed_line(permission="DENY"),
    allowed_line(principal="User:CN=app one,OU=Dev is Denied"),
    allowed_line().replace("principal=User:alice", "principal=User:*"),
    allowed_line().replace("principal=User:alice", "principal=Group:team"),
    allowed_line(principal=WRAPPED).replace(f"principal={WRAPPED}", "principal=User:x"),
    zookeeper_line(principal=WRAPPED.replace("null", "[a, b]")),
    zookeeper_line(),
    zookeeper_line(verdict="is Denied Operation", operation="IdempotentWrite"),
    simple_line(),
    simple_line(resource="Topic:orders:a"),
    simple_line(resource="Cluster:kafka-cluster"),
]

PROBE = {
    "operation": "WRITE",
    "resource": "Topic:LITERAL:hardcode",
    "request": " for request = InitProducerId with resourceRefCount = 0",
}
"""What Kafka asks to know whether any topic may be written to."""

PROBES = [
    allowed_line(**PROBE),
    allowed_line("()", **PROBE),
    line(head=f"[{CLOCK}] TRACE", **PROBE),
    zookeeper_line(**PROBE | {"operation": "Write"}),
    line(**PROBE | {"resource": "Topic:LITERAL:hardcoded"}),
    line(**PROBE | {"resource": "TransactionalId:LITERAL:hardcode"}),
    line(**PROBE | {"request": PROBE["request"].replace("= 0", "= 1")}),
    line(**PROBE | {"request": PROBE["request"].replace("InitProducerId", "Fetch")}),
]
"""Lines of such questions, and some that are only like them."""

_PIECES = [
    *(*WORDS, TAIL, " ", "\r", ":", "=", "x", "LITERAL:", "ALLOW", "\x00", "ü"),
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
            text = text.replace(random.choice(WORDS), random.choice(WORDS), 1)
    data = text.replace("\n", "").encode()
    if random.random() < 0.03:
        at = random.randrange(len(data) + 1)
        data = (
            data[:at] + random.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80"]) + data[at:]
        )
    return data.replace(b"\n", b"")
