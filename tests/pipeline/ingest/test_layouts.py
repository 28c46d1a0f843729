"""Kafka's lines in other layouts than Kafka's own mean the same, and are held to the same rules."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest.conversion_pattern import PatternError, compiled
from aclbroker.pipeline.ingest.kafka_line import TAIL, KafkaReason, parse
from aclbroker.pipeline.ingest.kafka_log import KafkaLog, Piece, end_of_records
from aclbroker.pipeline.ingest.layout_search import layout_of
from aclbroker.pipeline.ingest.layouts import JSON, OWN, Layout, TextLayout
from tests.pipeline.kafka_lines import (
    CLOCK,
    FORGED,
    NOT_RECORDS,
    RECORDS,
    allowed_line,
    line,
    mangled,
    simple_line,
    zookeeper_line,
)
from tests.pipeline.parsing import Result, binary, collected
from tests.support.tables import check_each

BERLIN = ZoneInfo("Europe/Berlin")


def read(lines: Sequence[bytes], layout: Layout, zone: tzinfo = UTC) -> Result:
    log = KafkaLog("eu", zone, layout)
    return collected([*log.parse(binary(lines), Piece("a.log", 0)), *log.finish()])


def layout(pattern: str) -> TextLayout:
    return TextLayout(compiled(pattern))


def bare(text: str) -> str:
    """A line of Kafka's own layout in that of ``%d %p %m%n``."""
    return text.removesuffix(TAIL).replace("[", "", 1).replace("]", "", 1)


AS_IN = {
    "[%d] %p %m%n": lambda text: text.removesuffix(TAIL),
    "%d %p %m%n": bare,
    "%d %p %m (%c)%n": lambda text: bare(text) + TAIL * text.endswith(TAIL),
    "%d{ISO8601} %-5p [%t] %c: %m%n": lambda text: (
        bare(text)
        .replace(" ", "T", 1)
        .replace(" INFO ", " INFO  [data-plane-kafka-request-handler-3] kafka.authorizer.logger: ")
        .replace(" DEBUG ", " DEBUG [main] kafka.authorizer.logger: ")
    ),
    "%p|%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}|%enc{%m}{CRLF}|%c{1}%n": lambda text: (
        f"{text.split()[2]}|2026-11-21T08:48:42.328+01:00|"
        f"{text.removesuffix(TAIL)[len(CLOCK) + 3 :].partition(' ')[2]}|logger"
    ),
    "%d{UNIX_MILLIS} %level{length=5} %msg%n": lambda text: bare(text).replace(
        CLOCK, "1795247322328", 1
    ),
    "%d{dd MMM yyyy HH:mm:ss,SSS}{Europe/Berlin} %p %m%n": lambda text: bare(text).replace(
        CLOCK, "21 Nov 2026 08:48:42,328", 1
    ),
}
"""How a line of Kafka's own layout looks in those of other patterns."""

HONEST = [line(), allowed_line(), allowed_line("()", permission="DENY"), zookeeper_line()]


def test_a_line_means_the_same_in_each_layout() -> None:
    def check(pattern: str) -> None:
        found = read([AS_IN[pattern](each).encode() for each in HONEST], layout(pattern))
        assert found.rejected == []
        assert found.events == [parse(each.encode(), "eu") for each in HONEST]

    check_each(AS_IN, check)


def test_what_is_not_of_the_layout_is_no_event() -> None:
    def check(pattern: str) -> None:
        other = [
            *(each.encode() for each in HONEST),
            b"",
            b"x",
            *(AS_IN[pattern](each).encode()[:-1] for each in HONEST),
            *(b"x" + AS_IN[pattern](each).encode() for each in HONEST),
            *(AS_IN[pattern](each).encode() + b" x" for each in HONEST),
        ]
        # Each by itself: one may hide those behind it.
        assert [found for each in other for found in read([each], layout(pattern)).events] == []

    check_each(AS_IN, check)


def test_a_layout_is_as_strict_as_kafkas_own(every_case: bool) -> None:
    """What Kafka's own layout refuses is refused, but for what is wrong with its end alone."""
    randomly = random.Random(20261122)
    same = layout("[%d] %p %m (%c) %n")
    count = 3_000 if every_case else 300
    lines = [*NOT_RECORDS, *RECORDS]
    texts = [each.encode() for each in lines] + [mangled(randomly) for _ in range(count)]
    for text in (each.rstrip(b"\r\t ") for each in texts):
        said = parse(text, "eu")
        found = read([text + b" "], same)
        assert found.events == ([said] if isinstance(said, tuple) else []), text


def test_old_lines_end_with_a_name_and_so_need_something_behind_it() -> None:
    text = simple_line()
    assert read([bare(text).encode()], layout("%d %p %m%n")).events == []
    found = read([(bare(text) + TAIL).encode()], layout("%d %p %m (%c)%n"))
    assert found.events == [parse(text.encode(), "eu")]


BROKEN = [
    line(resource="Group:LITERAL:x", request="", rule="", tail=""),
    FORGED,
    f" for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny{TAIL}",
]


@pytest.mark.parametrize("pattern", ["%d %p %m%n", "[%d] %p %m%n", "%d %p %m (%c)%n"])
def test_a_client_cannot_break_a_line_of_any_layout_unseen(pattern: str) -> None:
    lines = [AS_IN[pattern](each).encode() for each in [line(), *BROKEN, line()]]
    found = read(lines, layout(pattern))
    assert len(found.events) == 2
    reasons = (KafkaReason.CUT_OFF, KafkaReason.BETWEEN, KafkaReason.HEAD)
    assert dict(found.reasons) == dict(zip(lines[1:4], reasons, strict=True))
    assert end_of_records(lines[:3], layout(pattern)) == 1
    assert end_of_records(lines, layout(pattern)) == 5


def test_an_end_that_belongs_to_another_layout_is_none() -> None:
    text = line(resource="Group:LITERAL:x", request="", rule="")
    assert text.endswith(TAIL)
    found = read([bare(text).encode() + TAIL.encode()], layout("%d %p %m%n"))
    assert [reason for _, reason in found.reasons] == [KafkaReason.CUT_OFF.value]


def message(text: str) -> str:
    return text.removesuffix(TAIL).split(" ", 3)[3]


def in_json(text: str, time: Any, **others: Any) -> str:
    keys = {
        "@timestamp": time,
        "level": "INFO",
        "logger_name": "kafka.authorizer.logger",
        "message": message(text),
    }
    return json.dumps({k: v for k, v in {**keys, **others}.items() if v is not None})


ECS = {
    "ecs.version": "1.2.0",
    "process.thread.name": "main",
    "level": None,
    "logger_name": None,
    "log.level": "INFO",
    "log.logger": "kafka.authorizer.logger",
}
INSTANT = {"epochSecond": 1795247322, "nanoOfSecond": 328_104_000}


@pytest.mark.parametrize(
    "text",
    [
        in_json(line(), "2026-11-21T07:48:42.328Z"),
        in_json(line(), "2026-11-21T08:48:42.328104+01:00", thread_name="x", **{"@version": 1}),
        in_json(line(), None, instant=INSTANT, loggerFqcn="x", threadId=27),
        in_json(line(), None, timeMillis=1795247322328, thread="main"),
        in_json(line(), "2026-11-21T07:48:42.328Z", **ECS),
        json.dumps(
            {
                "@timestamp": "2026-11-21T07:48:42.328Z",
                "log": {"level": "INFO", "logger": "kafka.authorizer.logger"},
                "message": message(line()),
            }
        ),
    ],
)
def test_json_layouts(text: str) -> None:
    assert layout_of(f"{text}\n".encode()) is JSON
    found = read([text.encode()], JSON, BERLIN)
    assert found.rejected == []
    assert found.events == [parse(line().encode(), "eu")]


def test_a_time_in_json_without_a_zone_is_the_brokers() -> None:
    found = read([in_json(line(), "2026-11-21 07:48:42,328").encode()], JSON, BERLIN)
    assert [time for time, _ in found.events] == [
        datetime(2026, 11, 21, 6, 48, 42, 328_000, UTC),
    ]


def test_no_name_breaks_a_line_of_json() -> None:
    name = f"Group:LITERAL:x\n{FORGED}\ny"
    texts = [line(resource="Group:LITERAL:a\nb"), line(resource=name), line()]
    found = read([in_json(each, "2026-11-21T07:48:42.328Z").encode() for each in texts], JSON)
    assert [record.resource_name for _, record in found.events] == ["a\nb", "orders.eu"]
    assert [reason for _, reason in found.reasons] == [KafkaReason.WORDS.value]


NO_RECORDS_IN_JSON = [
    "",
    "{",
    "[]",
    in_json(line(), "2026-11-21T07:48:42.328Z")[:-1],
    in_json(line(), "2026-11-21T07:48:42.328Z") + "x",
    in_json(line(), "2026-11-21T07:48:42.328Z")[:-1] + ',"message":"x"}',
    in_json(line(), "2026-11-21T07:48:42.328Z", logger="kafka.authorizer.logger"),
    in_json(line(), "2026-11-21T07:48:42.328Z", logger_name="kafka.server.KafkaServer"),
    in_json(line(), "2026-11-21T07:48:42.328Z", level="FATAL"),
    in_json(line(), "2026-11-21T07:48:42.328Z", level=5),
    in_json(line(), "2026-11-21T07:48:42.328Z", message=["x"]),
    in_json(line(), "2026-11-21T07:48:42.328Z", message="Starting"),
    in_json(line(), "2026-11-21"[:7]),
    in_json(line(), {"epochSecond": "x"}),
    in_json(line(), True),
    in_json(line(), 10**30),
    in_json(line(), None),
    in_json(line(), "1999-11-21T07:48:42.328Z"),
    in_json(line(), "2026-11-21T07:48:42.328Z").replace("orders", "\\ud800"),
    line(),
]


def test_lines_of_json_that_are_no_records() -> None:
    def check(text: str) -> None:
        assert read([text.encode()], JSON).events == []

    check_each(NO_RECORDS_IN_JSON, check)


def test_the_layout_is_told_by_the_first_record() -> None:
    def told(*lines: str) -> Layout | None:
        return layout_of("".join(f"{each}\n" for each in lines).encode())

    assert told() == told("", "x") == told(line()) == OWN
    for pattern in ("[%d] %p %m%n", "%d %p %m%n", "%d %p %m (%c)%n"):
        noise = "2026-11-21 07:48:42,328 INFO Starting (kafka.server.KafkaServer)"
        assert told("", noise, AS_IN[pattern](line()), line()) == layout(pattern)
        assert told(AS_IN[pattern](zookeeper_line())) == layout(pattern)
    ours = '{"timestamp":"2026-11-21T07:48:42.328104Z","event":"change"}'
    assert told(ours) is told("{", ours) is told("\ufeff" + ours) is told("{", line()) is None
    assert told("x", ours) == OWN


STAMP = "2026-11-21T07:48:42.328104412Z"


def strimzi(text: str) -> str:
    return bare(text) + f"{TAIL} [data-plane-kafka-request-handler-7]" * text.endswith(TAIL)


WRAPPED = {
    "CRI": lambda text: f"{STAMP} stdout F {text}",
    "Strimzi": strimzi,
    "CRI and Strimzi": lambda text: f"{STAMP} stdout F {strimzi(text)}",
    "kubectl --timestamps": lambda text: f"{STAMP} {text}",
    "kubectl --prefix": lambda text: f"[pod/kafka-0/kafka] {text}",
    "kubectl --prefix --timestamps": lambda text: f"[pod/kafka-0/kafka] {STAMP} {text}",
    "docker compose": lambda text: f"kafka-1  | {text}",
    "syslog": lambda text: f"Nov  1 07:48:42 broker1 kafka[1234]: {text}",
    "syslog with priority": lambda text: f"<134>Nov 21 07:48:42 10.0.0.7 kafka: {text}",
    "journalctl -o short-iso": lambda text: (
        f"2026-11-21T07:48:42+0000 b1 kafka-server-start.sh[1234]: {text}"
    ),
    "RFC 5424": lambda text: f'<134>1 {STAMP} b1 kafka 1234 - [m@1 a="b]\\"c"] {text}',
    "CloudWatch": lambda text: f"2026-11-21T07:48:42.328000+00:00 broker/1 {text}",
    "Loki": lambda text: f'2026-11-21T07:48:42Z {{app="kafka", pod="kafka-0"}} {text}',
    "Docker": lambda text: json.dumps({"log": f"{text}\n", "stream": "stdout", "time": STAMP}),
    "Fluent Bit": lambda text: json.dumps({"@timestamp": STAMP, "log": text, "kubernetes": {}}),
    "Filebeat": lambda text: json.dumps(
        {"@timestamp": STAMP, "log": {"offset": 0, "file": {"path": "/x"}}, "message": text}
    ),
    "Elasticsearch": lambda text: json.dumps({"_index": "k", "_source": {"message": text}}),
    "journald": lambda text: json.dumps({"__REALTIME_TIMESTAMP": "1", "MESSAGE": text}),
    "Google Cloud": lambda text: json.dumps({"textPayload": text, "severity": "INFO"}),
    "fluentd": lambda text: f"2026-11-21T07:48:42+00:00\tkafka.log\t{json.dumps({'log': text})}",
    "Docker around a JSON layout": lambda text: json.dumps(
        {"log": in_json(text, "2026-11-21T07:48:42.328Z") + "\n", "stream": "stdout"}
    ),
}
"""Functions that wrap a line as a log collector does, by the name of the collector."""


def told_by(*lines: str) -> Layout | None:
    return layout_of("".join(f"{each}\n" for each in lines).encode())


def test_a_collector_around_a_line_does_not_change_its_meaning() -> None:
    def check(collector: str) -> None:
        lines = [WRAPPED[collector](each) for each in HONEST[:3]]
        layout = told_by(WRAPPED[collector](f"[{CLOCK}] INFO Starting the broker"), *lines)
        assert layout is not None
        found = read([each.encode() for each in lines], layout)
        assert found.rejected == []
        assert found.events == [parse(each.encode(), "eu") for each in HONEST[:3]]

    check_each(WRAPPED, check)


WITH_PLAIN_LINES = [each for each in WRAPPED if "JSON layout" not in each]


def test_a_name_cannot_break_a_line_within_a_collectors_unseen() -> None:
    def check(collector: str) -> None:
        lines = [WRAPPED[collector](each).encode() for each in [line(), *BROKEN, line()]]
        layout = layout_of(b"\n".join(lines))
        assert layout is not None
        found = read(lines, layout)
        assert len(found.events) == 2
        reasons = (KafkaReason.CUT_OFF, KafkaReason.BETWEEN, KafkaReason.HEAD)
        assert dict(found.reasons) == dict(zip(lines[1:4], reasons, strict=True))
        assert end_of_records(lines[:3], layout) == 1

    check_each(WITH_PLAIN_LINES, check)


def test_a_name_with_many_line_breaks_has_its_whole_reach_within_each_collectors_lines() -> None:
    """The envelopes of 2,000 lines have more bytes than the longest name."""
    group = "\n" * 2_000 + line(principal="User:forged") + "\n"
    broken = line(resource=f"Group:LITERAL:{group}").split("\n")
    for collector, wrapped in WRAPPED.items():
        if "JSON layout" not in collector:
            lines = [wrapped(each).encode() for each in [line(), *broken, line()]]
            layout = layout_of(lines[0])
            assert layout is not None
            found = read(lines, layout)
            assert found.events == [parse(line().encode(), "eu")] * 2, collector


def test_a_name_has_its_whole_reach_behind_the_head_of_a_pattern() -> None:
    """The rest of the record comes 32,000 bytes behind its first line, whose thread is long."""
    thread = "t" * 240
    at = "%d [%t] %p %m (%c)%n"
    group = "x" * 32_150 + "\n" + line(principal="User:forged") + "\n"
    lines = [
        re.sub(rf"^\[({CLOCK})\] ", rf"\1 [{thread}] ", each).encode()
        for each in [line(), *line(resource=f"Group:LITERAL:\n{group}").split("\n"), line()]
    ]
    assert read(lines, layout(at)).events == [parse(line().encode(), "eu")] * 2


def test_bytes_of_a_name_that_are_not_utf8_do_not_shorten_its_reach() -> None:
    """Kafka writes three bytes for each of them. The client sent less than 32,767 bytes."""
    group = "\ufffd" * 32_200 + "\n" + line(principal="User:forged") + "\n"
    broken = line(resource=f"Group:LITERAL:{group}").split("\n")
    lines = [each.encode() for each in [line(), *broken, line()]]
    assert read(lines, OWN).events == [parse(line().encode(), "eu")] * 2
    in_head = [re.sub(rf"^\[({CLOCK})\] ", r"\1 [main] ", each.decode()).encode() for each in lines]
    assert len(read(in_head, layout("%d [%t] %p %m (%c)%n")).events) == 2


def test_a_group_that_is_named_like_a_wrapped_record_is_no_record() -> None:
    """The name is inside a line of Kafka's own layout, or on a line of its own."""

    def check(collector: str) -> None:
        forged = WRAPPED[collector](line(principal="User:forged"))
        named = line(resource=f"Group:LITERAL:{forged}")
        broken = [BROKEN[0], forged, BROKEN[2]]
        for lines in ([named, line()], [*broken, line()]):
            layout = told_by(*lines)
            assert layout == OWN
            found = read([each.encode() for each in lines], layout)
            assert found.events == [parse(line().encode(), "eu")]

    check_each(WRAPPED, check)


def test_a_log_that_begins_with_other_lines_tells_its_layout_behind_them() -> None:
    more = [b"y", strimzi(line()).encode()]
    assert layout_of(b"x\n" * 9, more) == layout("%d{ISO8601} %p %m (%c) [%t]%n")
    assert layout_of(line().encode(), more) == OWN
    assert told_by("x", in_json(line(), "2026-11-21T07:48:42.328Z")) == JSON


BAD_PATTERNS = [
    ("", "the message, %m, once"),
    ("%d %p", "the message, %m, once"),
    ("%d %m %m", "the message, %m, once"),
    ("%p %m%n", "the time, %d, before"),
    ("%m %d%n", "the time, %d, before"),
    ("%d %p %m%c%n", "a fixed text, or nothing, behind"),
    ("%d %d %m%n", "stands twice"),
    ("%d{HH:mm:ss} %m%n", "lacks the year"),
    ("%d{yyyy-MM-dd HH:mm:ss a} %m%n", "'a' in the time is not known"),
    ("%d{ISO8601}{Mars/Base} %m%n", "'Mars/Base' is no time zone"),
    ("%d %highlight{%p} %m%n", "%highlight is not known here; known are %d, %m"),
    ("%d 100% %m%n", "without the name"),
]


def test_a_pattern_that_cannot_be_read_says_why() -> None:
    def check(case: tuple[str, str]) -> None:
        pattern, reason = case
        with pytest.raises(PatternError, match=f".*{reason}"):
            compiled(pattern)

    check_each(BAD_PATTERNS, check)
