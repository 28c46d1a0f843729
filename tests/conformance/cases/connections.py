"""What belongs to a connection: malformed bodies, unknown versions, logging in."""

from __future__ import annotations

from tests.conformance.cases.scenario import Scenario, Step, as_admin
from tests.conformance.player import ANONYMOUS, STRANGER
from tests.conformance.requests import (
    ANY,
    API_VERSIONS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    METADATA,
    SASL_HANDSHAKE,
    Request,
    describe,
    handshake,
    login,
    metadata,
    raw,
)

EVERYTHING = bytes([ANY, 0, ANY, 0, 0, ANY, ANY])
"""A compact DescribeAcls of everything, without its tagged fields."""

BODIES = {
    "describe truncated": raw(DESCRIBE_ACLS, b"\x01\x00"),
    "describe empty": raw(DESCRIBE_ACLS, b""),
    "create truncated": raw(CREATE_ACLS, b"\x00"),
    "create with a count beyond the frame": raw(CREATE_ACLS, b"\x7f\xff\xff\xff\x00"),
    "create null": raw(CREATE_ACLS, b"\xff\xff\xff\xff\x00"),
    "create compact null": raw(CREATE_ACLS, b"\x00\x00"),
    "delete null": raw(DELETE_ACLS, b"\xff\xff\xff\xff\x00"),
}
FLEXIBLE_BODIES = {
    "bytes behind the body": raw(DESCRIBE_ACLS, EVERYTHING + b"\x00\x09"),
    "an unknown tag": raw(DESCRIBE_ACLS, EVERYTHING + b"\x01\x09\x02ab"),
    "a tag longer than the body": raw(DESCRIBE_ACLS, EVERYTHING + b"\x01\x09\x7fab"),
    "a varint of six bytes": raw(DESCRIBE_ACLS, EVERYTHING + b"\xff\xff\xff\xff\xff\x01"),
    "a name that is no UTF-8": raw(DESCRIBE_ACLS, b"\x01\x03\xff\xfe\x01\x00\x00\x01\x01\x00"),
}
NOT_SUPPORTED = (
    (DESCRIBE_ACLS, 4),
    (CREATE_ACLS, 99),
    (DELETE_ACLS, -1),
    (METADATA, 99),
    (DESCRIBE_CLUSTER, 9),
    (SASL_HANDSHAKE, 2),
    (999, 0),
    (-1, 0),
    (32767, 1),
)
"""API keys and versions of them that no broker has."""

SOFTWARE_NAMES = ("", " ", "a b", "-a", "a-", "a.b", "a_b", "ä", "a" * 1000)
TOKENS = {
    "a wrong password": b"\0alice\0wrong",
    "an unknown user": b"\0nobody\0wrong",
    "no user": b"\0\0secret",
    "no password": b"\0alice\0",
    "no token": b"",
    "too few parts": b"alice",
    "too many parts": b"\0alice\0alice-secret\0x",
    "another authorization id": b"bob\0alice\0alice-secret",
    "its own authorization id": b"alice\0alice\0alice-secret",
    "bytes that are no text": b"\0alice\0\xff\xfe",
}


def malformed() -> list[Scenario]:
    """Return bodies that no codec writes, and versions that do not exist."""
    return [
        *(Scenario(name, as_admin(body), (1, 2)) for name, body in BODIES.items()),
        *(Scenario(name, as_admin(body), (2, 3)) for name, body in FLEXIBLE_BODIES.items()),
        *(
            Scenario(f"key {key}", as_admin(raw(key, b"")), (version,))
            for key, version in NOT_SUPPORTED
        ),
    ]


def sessions() -> list[Scenario]:
    """Return ApiVersions, and all that may go wrong with logging in."""
    every, unknown = (0, 1, 2, 3, 4), raw(API_VERSIONS, b"")
    return [
        Scenario("ApiVersions", (Step(ANONYMOUS, _software("test")),), every),
        Scenario("ApiVersions of a stranger", (Step(STRANGER, _software("test")),), every),
        Scenario("ApiVersions of no known version", as_admin(unknown, unknown), (-1, 5, 99)),
        *(Scenario(f"software {n[:9]!r}", as_admin(_software(n)), (3, 4)) for n in SOFTWARE_NAMES),
        Scenario("software of no version", as_admin(_software("test", "")), (3,)),
        Scenario("a stranger's Metadata", (Step(STRANGER, metadata()),), (9,)),
        Scenario("a stranger's DescribeAcls", (Step(STRANGER, describe()),)),
        Scenario("handshake on PLAINTEXT", (Step(ANONYMOUS, handshake()),), (0, 1)),
        Scenario("authenticate on PLAINTEXT", (Step(ANONYMOUS, login(b"x")),), (0, 1, 2)),
        Scenario("handshake when logged in", as_admin(handshake(), describe()), (1,)),
        Scenario("authenticate when logged in", as_admin(login(b"x"), describe()), (1, 2)),
        Scenario("unknown mechanism", (Step(STRANGER, handshake("NONE")),), (0, 1)),
        Scenario("authenticate without handshake", (Step(STRANGER, login(b"\0a\0b")),), (0, 1, 2)),
        *(
            Scenario(
                f"log in with {name}",
                (Step(STRANGER, handshake(), 1), Step(STRANGER, login(token))),
                (0, 1, 2),
            )
            for name, token in TOKENS.items()
        ),
    ]


def _software(name: str, version: str = "1.0") -> Request:
    fields = {"client_software_name": name, "client_software_version": version}
    return Request(API_VERSIONS, fields)
