r"""The subject of a certificate as Java (and so Kafka) prints it: X500Principal.getName().

RFC 2253 as Java has it: the last attribute first; keywords for nine types, and for all others their
object identifier with # and the value's DER in hexadecimal, as for values that are no text; a
backslash before , = + < > # ; " \ and before spaces and carriage returns at both ends; \00 for NUL.
Texts are decoded as in Java 25 (older releases take BMPString and Latin-1 for UTF-8).

The certificate's DER is walked, as `cryptography` neither keeps the subject's bytes nor reads
all that Java prints (an `*` in a PrintableString, an attribute that is there twice).
"""

from __future__ import annotations

from itertools import islice

from aclbroker.broker.auth.der import OBJECT_IDENTIFIER, SEQUENCE, SET, Element, element, elements

_VERSION = 0xA0
_SUBJECT = 4
_MORE = 0x80

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ENCODINGS = {
    12: "utf-8",  # UTF8String
    19: "iso-8859-1",  # PrintableString
    20: "iso-8859-1",  # T61String
    22: "iso-8859-1",  # IA5String
    27: "iso-8859-1",  # GeneralString
    30: "utf-16-be",  # BMPString
}
_ESCAPES = {ord(char): f"\\{char}" for char in ',=+<>#;"\\'} | {0: "\\00"}
_BLANKS = " \r"


_NOTHING = Element(0, b"", b"")


def name_of_certificate(der: bytes) -> str:
    """The subject of a certificate; "" if it is empty.

    Raises ValueError if the DER is malformed, or a text is not valid in its encoding.
    """
    to_be_signed = next(elements(element(der).content_of(SEQUENCE)), _NOTHING)
    fields = list(islice(elements(to_be_signed.content_of(SEQUENCE)), _SUBJECT + 2))
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    if len(fields) <= _SUBJECT:
        raise ValueError("the certificate ends before its subject")
    names = [_relative_name(value) for value in fields[_SUBJECT].children(SEQUENCE)]
    return ",".join(reversed(names))


def _relative_name(value: Element) -> str:
    return "+".join(_attribute(attribute) for attribute in value.children(SET))


def _attribute(value: Element) -> str:
    identifier, text = value.children(SEQUENCE)
    dotted = _dotted(identifier.content_of(OBJECT_IDENTIFIER))
    keyword = _KEYWORDS.get(dotted)
    encoding = _ENCODINGS.get(text.tag)
    if keyword is None or encoding is None:
        return f"{keyword or dotted}=#{text.whole.hex()}"
    return f"{keyword}={_escaped(text.content.decode(encoding))}"


def _escaped(text: str) -> str:
    escaped = text.translate(_ESCAPES)
    start = len(escaped) - len(escaped.lstrip(_BLANKS))
    end = max(start, len(escaped.rstrip(_BLANKS)))
    ends = (
        _with_backslashes(escaped[:start]),
        escaped[start:end],
        _with_backslashes(escaped[end:]),
    )
    return "".join(ends)


def _with_backslashes(blanks: str) -> str:
    return "".join(f"\\{blank}" for blank in blanks)


def _dotted(content: bytes) -> str:
    """The object identifier as numbers with dots (X.690, section 8.19)."""
    if not content or content[-1] & _MORE:
        raise ValueError("an object identifier that does not end")
    arcs = [0]
    for octet in content:
        arcs[-1] = arcs[-1] << 7 | octet & ~_MORE
        if not octet & _MORE:
            arcs.append(0)
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, [first, arcs[0] - 40 * first, *arcs[1:-1]]))
