"""Texts of clients are read in one pass, with the meaning of plain regular expressions.

A slow way of reading would take hours for the long texts here, and run into the suite's timeout.
"""

from __future__ import annotations

import random
import re

import pytest

pytest.importorskip("pyarrow")

from aclbroker.pipeline.ingest.doubts import doubts_of
from aclbroker.pipeline.ingest.kafka_line import KafkaReason, parse, without_head
from aclbroker.pipeline.ingest.printed_acls import allows_in, rule_acl
from tests.pipeline.kafka_lines import line

LONG = 32_000

OLD_HEAD = rb"\AINFO (?=No acl found for resource |operation = |principal = )"
OLD_PARTS = (
    rb"(?:No acl found for resource .*, authorized = (?:true|false)"
    rb"|principal = .* is a super user, allowing operation without checking acls\."
    rb"|operation = .* on resource = .* from host = .* is [A-Za-z]+ based on acl = .*)"
)
ALLOW = (
    r"StandardAcl[(\[]resourceType=(\w+), resourceName=(.*?), patternType=(\w+), "
    r"principal=(.*?), host=[^,]*, operation=\w+, permissionType=ALLOW"
)
RULE = (
    r"(?s)acl=StandardAcl[(\[]resourceType=(\w+), resourceName=(.*), patternType=(\w+), "
    r"principal=(.*), host=.*"
)

OLD_WORDS = [
    *("No acl found for resource ", ", authorized = true", ", authorized = ", "principal = "),
    " is a super user, allowing operation without checking acls.",
    *("operation = ", " on resource = ", " from host = ", " is Allow based on acl = ", " is "),
    *("x", "\n"),
]
ACL_WORDS = [
    "StandardAcl(resourceType=TOPIC, resourceName=",
    "acl=StandardAcl[resourceType=GROUP, resourceName=",
    *(", patternType=LITERAL, principal=", ", patternType=PREFIXED, principal="),
    ", host=*, operation=READ, permissionType=ALLOW",
    ", host=a\nb, operation=READ, permissionType=ALLOW",
    *(", host=", ", operation=R", "x", ",", "\n"),
]


def texts(words: list[str]) -> list[str]:
    chance = random.Random(3)
    return ["".join(chance.choices(words, k=chance.randint(1, 9))) for _ in range(20_000)]


def long(*words: str) -> str:
    return "".join(word * (LONG // len(words) // len(word)) for word in words)


def test_a_long_line_in_the_words_of_old_lines_is_recognized_soon() -> None:
    text = long("operation = ", " on resource = ", " from host = ")
    assert parse(text.encode(), "eu") is KafkaReason.HEAD


def test_a_line_is_an_old_one_if_it_has_the_parts_of_one_in_their_order() -> None:
    found = 0
    for text in texts(OLD_WORDS):
        rest = f"INFO {text}".encode()
        if re.match(OLD_HEAD, rest):
            continue
        has_word = any(word in text for word in (" on resource =", " from host ="))
        if has_word and re.search(OLD_PARTS, rest, re.DOTALL):
            found += 1
            assert without_head(rest) is KafkaReason.OTHER, text
        elif has_word:
            assert without_head(rest) is KafkaReason.HEAD, text
    assert found > 100


def test_a_timed_line_is_an_old_one_if_it_is_whole() -> None:
    found = 0
    for text in texts(OLD_WORDS):
        rest = f"INFO {text} (kafka.authorizer.logger)".encode()
        if re.match(OLD_HEAD, rest):
            is_whole = re.fullmatch(OLD_PARTS, text.encode(), re.DOTALL) is not None
            found += is_whole
            reason = KafkaReason.OLD_DEBUG if is_whole else KafkaReason.CUT_OFF
            assert without_head(rest, is_timed=True) is reason, text
    assert found > 100


def test_doubts_about_a_long_name_are_found_soon() -> None:
    name = long(ACL_WORDS[0], ACL_WORDS[2], "x")
    text = line(rule=f" based on rule{name}", tail=" based on rule DefaultDeny")
    assert doubts_of(text, KafkaReason.WORDS) == set()


def test_a_rule_with_a_long_name_is_read_soon() -> None:
    assert rule_acl(long(*ACL_WORDS[1:3], ", host=")) is not None
    assert rule_acl(long(*ACL_WORDS[1:3], "x")) is None


def test_acls_in_a_text_have_the_names_that_end_first() -> None:
    found = [(text, re.findall(ALLOW, text)) for text in texts(ACL_WORDS)]
    assert sum(len(acls) for _, acls in found) > 100
    for text, acls in found:
        assert list(allows_in(text)) == acls, text


def test_the_acl_of_a_rule_has_the_names_that_end_last() -> None:
    found = [(text, re.search(RULE, text)) for text in texts(ACL_WORDS)]
    assert sum(acl is not None for _, acl in found) > 100
    for text, acl in found:
        assert rule_acl(text) == (acl and acl.groups()), text
