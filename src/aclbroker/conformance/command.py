"""Runs the commands `aclbroker conformance record` and `aclbroker conformance compare`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from aclbroker.broker.client.blocking import ConnectionClosed, NoAnswer
from aclbroker.broker.client.errors import ClientConfigError, ClientError
from aclbroker.conformance import comparison, session
from aclbroker.conformance.behaviour import comparison as of_behaviour
from aclbroker.conformance.behaviour import playing
from aclbroker.conformance.cluster import SuiteError
from aclbroker.conformance.options import read_keys, read_target
from aclbroker.conformance.recording import (
    AUTHORIZATION,
    BEHAVIOUR,
    Recording,
    RecordingError,
    dumps,
    load,
    packaged_recording,
)
from aclbroker.conformance.report import FORMATS
from aclbroker.conformance.resources import DELETED_TOPIC, GROUPS, TOPICS
from aclbroker.terminal import complain, printable, put, put_text

EQUAL, DIFFERENT, FAILED = 0, 1, 2
"""The exit statuses: equal or recorded, different, and not run to its end."""

WARNING = (
    "This deletes ALL ACLs of the cluster at {server} and leaves none when it is done. It\n"
    "creates topics, groups and transactional ids whose names begin with 'conformance-', and\n"
    "deletes the topics and groups again. Never run it on a cluster that anybody needs."
)


class ConformanceOptions(NamedTuple):
    """The options of the command line."""

    action: str
    """``record`` or ``compare``."""
    bootstrap_server: str
    command_config: str
    apis: list[str]
    """The names of the API keys whose cases are played; none for all."""
    confirmed: bool
    output: str | None
    """The file to write to; None for standard output, where that is possible."""
    recording: str | None
    """The file to compare with; None for the packaged recording of Kafka 4.3.0."""
    format: str
    offered_only: bool
    broker_name: str | None
    suite: str = AUTHORIZATION
    """``authorization`` or ``behaviour``."""


def run(options: ConformanceOptions) -> int:
    """Run the command that the options describe; return the exit status."""
    try:
        target = read_target(options.bootstrap_server, options.command_config)
        keys = read_keys(options.apis)
        recorded = _recorded(options)
        for warning in target.warnings:
            complain(f"aclbroker conformance: {warning}")
        if not _confirmed(options):
            return FAILED
        name = options.broker_name or options.bootstrap_server
        play = playing.record if options.suite == BEHAVIOUR else session.record
        actual = play(target, name, _progress, keys)
    except (ConnectionClosed, NoAnswer) as error:
        return _failed(f"the broker stopped answering: {type(error).__name__}")
    except ClientConfigError as error:
        return _failed(*error.problems)
    except (ClientError, RecordingError, SuiteError, OSError) as error:
        return _failed(str(error))
    if recorded is None:
        return _write_recording(actual, str(options.output))
    return write_report(options, recorded.of(keys), actual)


def write_catalog() -> int:
    """Write the settings with which an aclbroker has the suite's topics and groups."""
    topics = ",".join(f"{name}:1" for name in (*TOPICS, DELETED_TOPIC))
    put(
        "# What the conformance suite expects a broker to have, for the server.properties of an "
        "aclbroker.",
        f"aclbroker.catalog.topics={topics}",
        f"aclbroker.catalog.groups={','.join(GROUPS)}",
    )
    return EQUAL


def _recorded(options: ConformanceOptions) -> Recording | None:
    """Return the recording to compare with, None if the command does not compare."""
    if options.action == "record":
        return None
    if options.recording is None:
        return packaged_recording(options.suite)
    recorded = load(Path(options.recording))
    if recorded.suite != options.suite:
        raise RecordingError(
            f"{options.recording} is a recording of the suite {recorded.suite}, not of "
            f"{options.suite}: --suite says which is played"
        )
    return recorded


def _confirmed(options: ConformanceOptions) -> bool:
    complain(*WARNING.format(server=printable(options.bootstrap_server)).split("\n"))
    if not options.confirmed:
        complain("Nothing was done. Add --yes to go on.")
    return options.confirmed


def _progress(role: str) -> None:
    complain(f"role {role}")


def _write_recording(recording: Recording, output: str) -> int:
    Path(output).write_bytes(dumps(recording))
    complain(f"{len(recording.answers)} answers recorded in {output}")
    return EQUAL


def write_report(options: ConformanceOptions, recorded: Recording, actual: Recording) -> int:
    """Compare two recordings; write the report in the format and to the output of the options.

    Returns `EQUAL` if every difference is explained by a divergence, else `DIFFERENT`.
    """
    compare = of_behaviour.compare if recorded.suite == BEHAVIOUR else comparison.compare
    results = compare(recorded, actual, offered_only=options.offered_only)
    report = FORMATS[options.format](recorded.broker, results)
    if options.output is None:
        put_text(report)
    else:
        Path(options.output).write_text(report)
    return EQUAL if all(result.passed for result in results) else DIFFERENT


def _failed(*reasons: str) -> int:
    complain(*(f"aclbroker conformance: {reason}" for reason in reasons))
    return FAILED
