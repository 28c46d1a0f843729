"""All rows of the benchmark, in their order."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.gateway import requests
from benchmarks.gateway.requests import LARGE_TOPIC, RECORD_BYTES, SMALL_BYTES, TOPIC
from benchmarks.gateway.rows import (
    CPU_GB,
    CPU_REQUEST,
    MEGABYTES,
    MEMORY,
    P50,
    P99,
    REQUESTS,
    RESIDENT,
    Comparison,
    Kind,
    Row,
    busy,
)
from benchmarks.gateway.stage import AUDITED, DIRECT, GATEWAY, MANY_ACLS, PROXY
from benchmarks.gateway.works import ChangingWork, ConsumerTool, IdleWork, LoadWork, ProducerTool

_SMALL = requests.produce(TOPIC, SMALL_BYTES)
_LARGE = requests.produce(LARGE_TOPIC, RECORD_BYTES)
_MANY_CONNECTIONS: Final = 16
_IDLE: Final = 2_000
_busy_bulk = partial(busy, CPU_GB, MEGABYTES, latency=False)


def rows() -> list[Row]:
    """Return all rows."""
    return [*_small(), *_bulk(), *_tools(), *_tls(), *_settings(), *_quiet(), *_idle()]


def _small() -> list[Row]:
    size = len(_SMALL.frame)
    return [
        Row(
            "small-produce",
            f"Produce of {size} bytes, 16 connections",
            LoadWork(_SMALL, _MANY_CONNECTIONS),
            busy(ratio=2.0),
        ),
        Row(
            "small-pipelined",
            f"Produce of {size} bytes, 4 connections, 16 requests deep",
            LoadWork(_SMALL, 4, 16),
            busy(ratio=1.2),
        ),
        Row(
            "small-metadata",
            "Metadata of one topic, 16 connections",
            LoadWork(requests.metadata(), _MANY_CONNECTIONS),
            busy(cpu=40.0),
        ),
        Row(
            "small-offsets",
            "ListOffsets of one partition, 16 connections",
            LoadWork(requests.list_offsets(), _MANY_CONNECTIONS),
            busy(cpu=40.0),
        ),
    ]


def _bulk() -> list[Row]:
    return [
        Row(
            "bulk-fetch",
            "Fetch of 1 MiB, 2 connections",
            LoadWork(requests.fetch(), 2),
            _busy_bulk(ratio=1.5, throughput=0.30),
            note="Kafka sends the records of a direct connection from its files (sendfile).",
        ),
        Row("bulk-produce", "Produce of 1 MB, 2 connections", LoadWork(_LARGE, 2), _busy_bulk()),
    ]


def _tools() -> list[Row]:
    return [
        Row(
            "tool-produce-100",
            "kafka-producer-perf-test, 100 bytes",
            ProducerTool(100, 2_000_000),
            _busy_bulk(ratio=1.8, throughput=0.90),
        ),
        Row(
            "tool-produce-1k",
            "kafka-producer-perf-test, 1 KiB",
            ProducerTool(1024, 500_000),
            _busy_bulk(ratio=1.8, throughput=0.95),
        ),
        Row(
            "tool-consume-1k",
            "kafka-consumer-perf-test, 1 KiB",
            ConsumerTool(1024, 1_000_000),
            _busy_bulk(ratio=1.6, throughput=0.97),
        ),
    ]


def _tls() -> list[Row]:
    note = "The C proxy copies encrypted bytes to the TLS listener of Kafka."
    size = len(_SMALL.frame)
    return [
        Row(
            "tls-small",
            f"TLS: Produce of {size} bytes, 16 connections",
            LoadWork(_SMALL, _MANY_CONNECTIONS, tls=True),
            busy(),
            note=note,
        ),
        Row(
            "tls-fetch",
            "TLS: Fetch of 1 MiB, 2 connections",
            LoadWork(requests.fetch(), 2, tls=True),
            _busy_bulk(),
            note=note,
        ),
        Row(
            "tls-produce",
            "TLS: Produce of 1 MB, 2 connections",
            LoadWork(_LARGE, 2, tls=True),
            _busy_bulk(),
            note=note,
        ),
    ]


def _settings() -> list[Row]:
    small = LoadWork(_SMALL, _MANY_CONNECTIONS)
    return [
        Row(
            "many-acls",
            "Small Produce with 110,000 ACLs of 2,000 principals, beside 10 ACLs",
            ChangingWork(small),
            (
                Comparison(CPU_REQUEST, GATEWAY, Kind.RATIO, 1.1, side=MANY_ACLS),
                Comparison(REQUESTS, GATEWAY, Kind.RATIO, 0.9, at_least=True, side=MANY_ACLS),
            ),
            sides=(GATEWAY, MANY_ACLS),
            note="Both gateways create or delete an ACL of the measured principal each second.",
        ),
        Row(
            "audit",
            "Small Produce with all decisions in the audit log, beside none",
            small,
            (Comparison(CPU_REQUEST, GATEWAY, Kind.ADDED, 2.0, side=AUDITED),),
            sides=(GATEWAY, AUDITED),
            note="The log has a line a minute for equal decisions, the default.",
        ),
    ]


def _quiet() -> list[Row]:
    latency = (
        Comparison(P50, DIRECT, Kind.ADDED, 15.0),
        Comparison(P99, DIRECT, Kind.ADDED, 150.0),
        Comparison(P50, DIRECT, Kind.ADDED, side=PROXY),
        Comparison(P99, DIRECT, Kind.ADDED, side=PROXY),
    )
    title = f"Produce of {len(_SMALL.frame)} bytes, one connection"
    return [Row("quiet", title, LoadWork(_SMALL, 1), latency)]


def _idle() -> list[Row]:
    return [
        Row(
            f"idle-{name}",
            f"{_IDLE:,} idle connections, {title}",
            IdleWork(_IDLE, tls=name == "tls"),
            (Comparison(MEMORY, target=target), Comparison(RESIDENT)),
            sides=(GATEWAY,),
            note="Each connection has had one answer, and has its own connection to Kafka.",
        )
        for name, title, target in (("plain", "without TLS", 16.0), ("tls", "TLS", 64.0))
    ]
