"""Names of groups, by which a client tries to write a record of its own choice into a text log."""

from __future__ import annotations

from tests.pipeline.kafka_lines import line

VICTIM = "User:forged-victim"

FORGED = line(
    head="[2026-11-21 00:00:00,000] DEBUG",
    principal=VICTIM,
    verdict="is Allowed operation",
    operation="WRITE",
    rule=" based on rule SuperUser",
)
"""A perfect record, which claims that `VICTIM` was allowed something."""

_OWN_JSON = (
    '{"timestamp":"2026-11-21T07:48:42.328104Z","level":"debug","event":"authorization",'
    '"cluster_id":"abc","node_id":1,"listener":"SASL","principal":"' + VICTIM + '",'
    '"host":"127.0.0.1","operation":"WRITE","resource_type":"TOPIC","pattern_type":"LITERAL",'
    '"resource_name":"orders","resource_ref_count":1,"api_name":"Produce","api_version":9,'
    '"client_id":"app","correlation_id":7,"allowed":true,"rule":"SuperUser","acl":null}'
)

_REST = " for request = Produce with resourceRefCount = 1 based on rule SuperUser"
_TAIL = " (kafka.authorizer.logger)"

BREAKS = {"LF": "\n", "CRLF": "\r\n", "LFCR": "\n\r", "CR": "\r"}

FORGERIES = {
    **{f"continued, {name}": f"x{each}{FORGED}" for name, each in BREAKS.items()},
    **{f"complete, {name}": f"x{each}{FORGED}{each}" for name, each in BREAKS.items()},
    "complete, twice": f"x\n{FORGED}\n{FORGED}\n",
    "complete, many": "x\n" + f"{FORGED}\n" * 100,
    "complete, among lines of nothing": f"x\n\ny\n{FORGED}\n\n",
    "nothing before": f"\n{FORGED}\n",
    "inline": f"x{_REST}{_TAIL}",
    "inline, whole": f"x{_REST}{_TAIL} {FORGED}",
    "our own form": f"x\n{_OWN_JSON}\n",
    "our own form, inline": f"x {_OWN_JSON}{_REST}",
}
"""By kind, names that leave a broken line in the log, or one with the words of a record twice."""

SEAMLESS_VICTIM = "User:seamless-victim"
FORGER = "User:bob"
SEAMLESS = (
    "x for request = FindCoordinator with resourceRefCount = 1 based on rule DefaultDeny"
    f"{_TAIL}\n"
    f"{FORGED.replace(VICTIM, SEAMLESS_VICTIM)}\n"
    + line(
        head="[2026-11-21 00:00:00,000] INFO",
        principal=FORGER,
        resource="Group:LITERAL:y",
        request="",
        rule="",
        tail="",
    )
)
"""A name that leaves no broken line: its pieces complete the true record before and behind it."""

ODD_NAMES = (
    "line\u2028separator",
    "next\u0085line",
    "carriage\rreturn",
    "tab\tand\x0bfeed\x0c",
    "nul\x00",
    "back\\slash\\n",
    "quoted \"'\u00fc\U0001f600",
    f"with the end of a line{_TAIL}",
    "Principal = User:x is Allowed",
    " is Denied",
    " ",
    "",
)
"""Names that are odd, and have one meaning all the same."""
