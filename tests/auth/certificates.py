"""Certificates with any subject, as DER; nobody has signed them."""

from collections.abc import Iterable, Sequence

SEQUENCE, SET, OID, INTEGER, BIT_STRING, UTC_TIME, VERSION = 0x30, 0x31, 6, 2, 3, 23, 0xA0
UTF8, PRINTABLE, T61, IA5, GENERAL, UNIVERSAL, BMP = 12, 19, 20, 22, 27, 28, 30
NUMERIC, VISIBLE, OCTET_STRING, BOOLEAN = 18, 26, 4, 1

_ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2"
_EC_PUBLIC_KEY = "1.2.840.10045.2.1"
_P_256 = "1.2.840.10045.3.1.7"
_GENERATOR = (
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)

Attribute = tuple[str, int, bytes]
"""The type's object identifier, and the value's tag and bytes."""


def der(tag: int, *parts: bytes) -> bytes:
    """A value with its tag and length."""
    content = b"".join(parts)
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def object_identifier(dotted: str) -> bytes:
    """An object identifier."""
    first, second, *rest = map(int, dotted.split("."))
    octets = bytearray()
    for arc in [first * 40 + second, *rest]:
        septets = [arc & 0x7F]
        while arc := arc >> 7:
            septets.append(0x80 | arc & 0x7F)
        octets += bytes(reversed(septets))
    return der(OID, bytes(octets))


def name(rdns: Iterable[Sequence[Attribute]]) -> bytes:
    """A Name, its relative distinguished names in the order of the certificate."""
    return der(
        SEQUENCE,
        *(
            der(SET, *(der(SEQUENCE, object_identifier(t), der(tag, v)) for t, tag, v in rdn))
            for rdn in rdns
        ),
    )


def certificate(subject: bytes) -> bytes:
    """A certificate for a subject, which is the DER of a Name."""
    algorithm = der(SEQUENCE, object_identifier(_ECDSA_WITH_SHA256))
    to_be_signed = der(
        SEQUENCE,
        der(VERSION, der(INTEGER, b"\x02")),
        der(INTEGER, b"\x01"),
        algorithm,
        name([[("2.5.4.3", UTF8, b"a CA")]]),
        der(SEQUENCE, der(UTC_TIME, b"250101000000Z"), der(UTC_TIME, b"350101000000Z")),
        subject,
        _public_key(),
    )
    signature = der(SEQUENCE, der(INTEGER, b"\x01"), der(INTEGER, b"\x01"))
    return der(SEQUENCE, to_be_signed, algorithm, der(BIT_STRING, b"\0", signature))


def _public_key() -> bytes:
    """P-256 with its generator as the public key."""
    algorithm = der(SEQUENCE, object_identifier(_EC_PUBLIC_KEY), object_identifier(_P_256))
    return der(SEQUENCE, algorithm, der(BIT_STRING, b"\0", bytes.fromhex(_GENERATOR)))
