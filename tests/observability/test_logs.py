"""The log: one line for each event in both forms, whatever the values are."""

import asyncio
import io
import json
import logging
import subprocess
import sys
import warnings

import pytest
import structlog

from aclbroker.broker.observability import logs

FORGERIES = [
    "x\n[2026-11-21 00:00:00] INFO forged",
    "x\r\nforged",
    "\x1b[31mred\x1b[2K",
    "next\x85line\u2028separator\u2029",
    "\x9b31m\x7f",
    "right\u202eto left",
    'quote" level=error x="',
    "level=error",
    "back\\slash",
    "",
]


def logged(form: str, level: str = "info") -> tuple[io.StringIO, structlog.stdlib.BoundLogger]:
    stream = io.StringIO()
    logs.configure(level, form, stream)
    return stream, structlog.get_logger()


@pytest.mark.parametrize("value", FORGERIES)
def test_a_value_cannot_forge_a_line_of_json(value: str):
    stream, log = logged("json")
    log.info("denied", principal=value)
    [line] = stream.getvalue().splitlines()
    assert line.isascii()
    assert line.isprintable()
    event = json.loads(line)
    assert list(event) == ["timestamp", "level", "event", "principal"]
    assert (event["level"], event["event"], event["principal"]) == ("info", "denied", value)


@pytest.mark.parametrize("value", FORGERIES)
def test_a_value_cannot_forge_a_line_or_a_key_on_the_console(value: str):
    stream, log = logged("console")
    log.info("denied", principal=value, host="127.0.0.1")
    text = stream.getvalue()
    assert text.endswith("\n")
    [line] = text.splitlines()
    assert line.isprintable()
    shown = line.partition("denied principal=")[2].removesuffix(" host=127.0.0.1")
    assert json.loads(shown) == value


def test_a_plain_value_stands_on_the_console_as_it_is():
    stream, log = logged("console")
    log.warning("denied", principal="User:J\xf6rg", count=3, ports={"a": [1]})
    time, rest = stream.getvalue().split(" ", 1)
    assert time.endswith("Z")
    assert rest == '[warning] denied principal=User:J\xf6rg count=3 ports={"a":[1]}\n'


@pytest.mark.parametrize("form", ["json", "console"])
def test_the_text_of_an_event_cannot_forge_a_line(form: str):
    stream, _ = logged(form)
    logging.getLogger("asyncio").error("failed: %s", "x\nforged\x1b[31m")
    [line] = stream.getvalue().splitlines()
    assert line.isprintable()
    assert r"failed: x\nforged" in line


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_is_logged_without_forging_a_line(form: str):
    stream, log = logged(form)
    try:
        raise ValueError("x\n2026-11-21T00:00:00Z [info] forged \x1b[31m")
    except ValueError:
        log.exception("failed")
    first, *rest = stream.getvalue().splitlines()
    assert "failed" in first
    assert "ValueError" in stream.getvalue()
    assert all(line.startswith("    ") for line in rest)
    assert "\x1b" not in stream.getvalue()


def test_events_below_the_level_are_not_logged():
    stream, log = logged("json", "warning")
    log.info("unseen")
    log.warning("seen")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["seen"]


def test_a_level_that_is_off_costs_no_rendering():
    class Unprintable:
        def __str__(self) -> str:
            raise AssertionError("rendered")

    stream, log = logged("console", "info")
    log.debug("unseen", value=Unprintable())
    assert stream.getvalue() == ""


def test_without_a_terminal_the_form_is_json():
    stream = io.StringIO()
    logs.configure(stream=stream)
    structlog.get_logger().info("ready")
    assert json.loads(stream.getvalue())["event"] == "ready"


async def test_what_asyncio_warns_of_is_in_the_log():
    stream, _ = logged("json")
    error = OSError("lost")
    asyncio.get_running_loop().call_exception_handler({"message": "odd", "exception": error})
    event = json.loads(stream.getvalue())
    assert (event["level"], event["logger"], event["event"]) == ("error", "asyncio", "odd")
    assert "OSError: lost" in event["exception"]


def test_warnings_of_python_are_in_the_log():
    stream, _ = logged("json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("too old", stacklevel=1)
        logging.captureWarnings(False)
    event = json.loads(stream.getvalue())
    assert (event["level"], event["logger"]) == ("warning", "py.warnings")
    assert "too old" in event["event"]


@pytest.mark.parametrize(
    ("number", "level"), [(35, "warning"), (45, "error"), (60, "critical")]
)  # fmt: skip
def test_levels_between_those_of_the_log_count_as_the_lower_one(number: int, level: str):
    stream, _ = logged("json")
    logging.getLogger("x").log(number, "odd")
    assert json.loads(stream.getvalue())["level"] == level


def test_a_log_that_nobody_can_read_stops_nothing():
    program = """
import sys
from aclbroker.broker.observability import logs
import structlog
logs.configure(form="json")
sys.stdin.read()
for _ in range(3):
    structlog.get_logger().error("nobody reads this")
print("still running")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stderr.close()
    process.stdin.close()
    with process:
        assert process.stdout.read() == "still running\n"


def test_a_stream_without_a_descriptor_is_written_at_once():
    stream = io.StringIO()
    output = logs.configure("info", "json", stream)
    with output.writing():
        structlog.get_logger().info("ready")
        assert json.loads(stream.getvalue())["event"] == "ready"
        assert (output.lost_lines, output.is_losing) == (0, False)


def test_lines_stand_in_a_file_in_their_order(tmp_path):
    with (tmp_path / "log").open("w", encoding="ascii") as stream:
        output = logs.configure("info", "console", stream)
        structlog.get_logger().info("before")
        with output.writing():
            for number in range(100):
                structlog.get_logger().info("J\xf6rg", number=number)
    lines = (tmp_path / "log").read_text().splitlines()
    assert "before" in lines[0]
    assert [line.partition("] ")[2] for line in lines[1:]] == [
        f"J\\xf6rg number={number}" for number in range(100)
    ]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a b=c", "a b=c"),
        ("\xe9\U0001f600", "\xe9\U0001f600"),
        ("a\nb\r\t\\n", "a\\nb\\r\\t\\\\n"),
        ("\x00\x1b\x7f\x85", "\\x00\\x1b\\x7f\\x85"),
        ("\u2028\u202e", "\\u2028\\u202e"),
    ],
)
def test_escaped_text_shows_control_characters(text: str, escaped: str):
    assert logs.escape(text) == escaped
