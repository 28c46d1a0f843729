"""Subjects of certificates, printed as Java prints them."""

import random

import pytest

from aclbroker.broker.auth.mapping.distinguished_name import name_of_certificate
from tests.auth.certificates import (
    BIT_STRING,
    BMP,
    BOOLEAN,
    GENERAL,
    IA5,
    INTEGER,
    NUMERIC,
    OCTET_STRING,
    PRINTABLE,
    SEQUENCE,
    SET,
    T61,
    UNIVERSAL,
    UTF8,
    VISIBLE,
    Attribute,
    certificate,
    der,
    name,
    object_identifier,
)
from tests.auth.java_names import JavaNames

CN, C, L, ST, STREET, ORG, OU = (f"2.5.4.{number}" for number in (3, 6, 7, 8, 9, 10, 11))
UID, DC = "0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.25"
SERIAL_NUMBER, EMAIL = "2.5.4.5", "1.2.840.113549.1.9.1"


def printed(*rdns: list[Attribute]) -> str:
    return name_of_certificate(certificate(name(rdns)))


def test_the_last_attribute_comes_first_and_nine_types_have_keywords():
    types = [C, ST, L, ORG, OU, CN, STREET, DC, UID]
    assert printed(*([(t, UTF8, t.encode())] for t in types)) == (
        f"UID={UID},DC={DC},STREET={STREET},CN={CN},OU={OU},O={ORG},L={L},ST={ST},C={C}"
    )


def test_other_types_are_numbers_with_their_value_in_hexadecimal():
    assert printed([(EMAIL, IA5, b"a@b")], [(SERIAL_NUMBER, PRINTABLE, b"7")]) == (
        "2.5.4.5=#130137,1.2.840.113549.1.9.1=#1603614062"
    )
    assert printed([("2.999.18446744073709551616", UTF8, b"a")]) == (
        "2.999.18446744073709551616=#0c0161"
    )


def test_values_of_one_relative_name_keep_their_order_behind_pluses():
    rdn = [(OU, UTF8, b"b"), (CN, UTF8, b"a"), (CN, UTF8, b"a")]
    assert printed([(ORG, UTF8, b"c")], rdn) == "OU=b+CN=a+CN=a,O=c"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", ""),
        ("Duke, Inc.", r"Duke\, Inc."),
        ('a=b+c<d>e#f;g"h\\i', r"a\=b\+c\<d\>e\#f\;g\"h\\i"),
        ("  a  b  ", r"\ \ a  b\ \ "),
        ("\r a\n\tb \r", "\\\r\\ a\n\tb\\ \\\r"),
        ("   ", r"\ \ \ "),
        ("a\0b", r"a\00b"),
        ("a\\ ", r"a\\\ "),
        ("*/'?.", "*/'?."),
        ("Zo\xeb \N{GREEK SMALL LETTER ALPHA} \N{GRINNING FACE}", "Zo\xeb \u03b1 \U0001f600"),
    ],
)
def test_special_characters_are_escaped_and_others_stay(value: str, shown: str):
    assert printed([(CN, UTF8, value.encode())]) == f"CN={shown}"


@pytest.mark.parametrize(
    ("tag", "octets", "shown"),
    [
        (PRINTABLE, b"*.example.com", "*.example.com"),
        (T61, b"Zo\xeb", "Zo\xeb"),
        (IA5, b"Zo\xeb", "Zo\xeb"),
        (GENERAL, b"Zo\xeb", "Zo\xeb"),
        (BMP, "Zo\xeb \U0001f600".encode("utf-16-be"), "Zo\xeb \U0001f600"),
        (UNIVERSAL, b"\0\0\0a", "#1c0400000061"),
        (NUMERIC, b"12", "#12023132"),
        (BOOLEAN, b"\xff", "#0101ff"),
        (0x2C, der(UTF8, b"a"), "#2c030c0161"),
    ],
)
def test_a_value_is_read_by_its_type_or_shown_in_hexadecimal(tag: int, octets: bytes, shown: str):
    assert printed([(CN, tag, octets)]) == f"CN={shown}"


def test_an_empty_subject_is_an_empty_name():
    assert printed() == ""


def test_a_certificate_of_version_1_has_no_version_field():
    fields = [der(INTEGER, b"\1"), *(der(SEQUENCE) for _ in range(3)), name([[(CN, UTF8, b"a")]])]
    assert name_of_certificate(der(SEQUENCE, der(SEQUENCE, *fields))) == "CN=a"


@pytest.mark.parametrize(
    "value",
    [
        (CN, UTF8, b"a\xff"),
        (CN, UTF8, b"\xed\xa0\x80"),
        (CN, BMP, b"\0a\0"),
        (CN, BMP, b"\xd8\0\0a"),
    ],
)
def test_a_text_that_is_invalid_in_its_encoding_is_refused(value: Attribute):
    with pytest.raises(ValueError, match="codec"):
        printed([value])


@pytest.mark.parametrize(
    "subject",
    [
        der(SET),
        der(SEQUENCE, der(SEQUENCE)),
        der(SEQUENCE, der(SET, der(SET))),
        der(SEQUENCE, der(SET, der(SEQUENCE, object_identifier(CN)))),
        der(SEQUENCE, der(SET, der(SEQUENCE, der(UTF8, b"a"), der(UTF8, b"a")))),
        der(SEQUENCE, der(SET, der(SEQUENCE, der(6, b"\x55\x84"), der(UTF8, b"a")))),
        der(SEQUENCE, der(SET, der(SEQUENCE, der(6), der(UTF8, b"a")))),
        b"\x30\x81\x00",
        b"\x30\x82\x00\x02\x31\x00",
        b"\x30\x80\x00\x00",
        b"\x30\x05\x31\x00",
        b"\x3f\x81\x01\x00",
        der(SEQUENCE, der(SET, der(SEQUENCE, object_identifier(CN), der(0x9F, b"\1a")))),
    ],
)
def test_a_subject_that_is_no_name_in_der_is_refused(subject: bytes):
    fields = [der(INTEGER, b"\1"), der(SEQUENCE), der(SEQUENCE), der(SEQUENCE), subject]
    with pytest.raises(ValueError):  # noqa: PT011 - which of the rules it breaks is no matter
        name_of_certificate(der(SEQUENCE, der(SEQUENCE, *fields)))


def test_whatever_bytes_are_given_only_a_value_error_comes_of_it():
    whole = certificate(name([[(CN, UTF8, b"alice"), (OU, BMP, b"\0a")], [(EMAIL, IA5, b"a@b")]]))
    chance = random.Random(1)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(whole[: chance.randint(0, len(whole))])
        for _ in range(min(len(damaged), chance.randint(0, 3))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            name_of_certificate(bytes(damaged))
        except ValueError:
            refused += 1
    assert refused > 2000


def test_java_prints_the_same_names(java: JavaNames):
    chance = random.Random(2)
    for _ in range(500):
        rdns = [
            [_attribute(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
            for _ in range(chance.randint(0, 5))
        ]
        whole = certificate(name(rdns))
        assert [name_of_certificate(whole)] == java.ask("subject", whole.decode("iso-8859-1")), rdns


_TYPES = [CN, C, L, ST, STREET, ORG, OU, UID, DC, SERIAL_NUMBER, EMAIL, "2.999.3", "0.39.128.16384"]
_CHARS = "ab ,=+<>#;\"\\\r\n\0\t'()-./:?*@_&\x7f\x80\xe9\xdf\u4e2d\u202e\U0001f600"
# Releases of Java before 25 take other encodings than UTF-8 for UTF-8, too.
_ASCII_TYPES = [PRINTABLE, IA5, T61, GENERAL, NUMERIC, VISIBLE, OCTET_STRING]


def _attribute(chance: random.Random) -> Attribute:
    text = "".join(chance.choices(_CHARS, k=chance.randint(0, 8)))
    ascii_text = text.encode("ascii", "ignore")
    tag, octets = chance.choice(
        [
            (UTF8, text.encode()),
            (UTF8, text.encode()),
            (chance.choice(_ASCII_TYPES), ascii_text),
            (UNIVERSAL, text.encode("utf-32-be")),
            (BIT_STRING, b"\0" + ascii_text),
            (SEQUENCE, der(INTEGER, b"\1")),
            (PRINTABLE, b"x" * chance.choice([127, 128, 300])),
        ]
    )
    return chance.choice(_TYPES), tag, octets
