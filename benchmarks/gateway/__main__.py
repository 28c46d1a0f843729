"""Measures the gateway beside a proxy in C, and beside a direct connection to the same Kafka.

    python -m benchmarks.gateway [--quick] [--rounds N] [--only ROW ...] [--list]

A complete run writes GATEWAY.md and gateway.json into benchmarks/. One with --quick or --only
prints alone. With --output any run writes both, into that directory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks import environment
from benchmarks.gateway import catalog, report
from benchmarks.gateway.machine import Moment
from benchmarks.gateway.programs import has_tls
from benchmarks.gateway.rows import Row, Sample
from benchmarks.gateway.stage import Stage, running_stage
from benchmarks.running import progress

HERE = Path(__file__).parent.parent
ROUNDS, QUICK_ROUNDS = 5, 2
_SHOWN = ("command", "date", "machine", "load", "system", "aclbroker", "Kafka")


def main() -> None:
    """Measure the rows that the arguments name, print them, and write them down."""
    arguments = _arguments()
    rows = [row for row in catalog.rows() if _wanted(row, arguments.only)]
    if arguments.list:
        sys.stdout.writelines(f"{row.key:20} {row.title}\n" for row in rows)
        return
    if not rows:
        sys.exit(f"No row begins with {' or '.join(arguments.only)}; --list names all rows.")
    run = environment.describe(" ".join(["python -m benchmarks.gateway", *sys.argv[1:]]))
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    try:
        if any("tls" in row.key for row in rows) and not has_tls():
            progress(
                "Rows with TLS are left out: OpenSSL's headers (libssl-dev) are not installed."
            )
            rows = [row for row in rows if "tls" not in row.key]
        samples = measure_all(rows, rounds, arguments.quick)
    except (pytest.skip.Exception, pytest.fail.Exception) as error:
        sys.exit(f"A program is missing: {error}")
    sys.stdout.write(report.text(rows, samples))
    write(rows, samples, run, arguments)
    if len(samples) < len(rows):
        sys.exit("Some rows failed.")


def write(
    rows: Sequence[Row],
    samples: Mapping[str, report.Samples],
    run: Mapping[str, str],
    arguments: argparse.Namespace,
) -> None:
    """Write the page and the samples, if the arguments ask for it."""
    shown = {name: value for name, value in run.items() if name in _SHOWN}
    directory = arguments.output or (None if arguments.quick or arguments.only else HERE)
    if directory:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "GATEWAY.md").write_text(report.page(shown, rows, samples))
        saved = {
            key: {side: [one._asdict() for one in taken] for side, taken in by_side.items()}
            for key, by_side in samples.items()
        }
        (directory / "gateway.json").write_text(json.dumps({"run": shown, "rows": saved}, indent=1))


def measure_all(
    rows: Sequence[Row], rounds: int, quick: bool
) -> dict[str, dict[str, list[Sample]]]:
    """Measure all rows on the same servers; a row that fails is left out, with a message."""
    samples = {}
    with running_stage() as stage:
        for row in rows:
            try:
                samples[row.key] = measure(stage, row, rounds, quick)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                progress(f"{row.key} is left out, because it failed: {error}")
    return samples


def measure(stage: Stage, row: Row, rounds: int, quick: bool) -> dict[str, list[Sample]]:
    """Do the work of a row on its sides, every second round in the opposite order."""
    samples: dict[str, list[Sample]] = {side: [] for side in row.sides}
    # Kafka is slow until its JVM has compiled the code of a request, so one run does not count.
    row.work(stage, row.sides[0], quick)
    for number in range(rounds):
        for side in row.sides[:: -1 if number % 2 else 1]:
            load, before = os.getloadavg()[0], Moment.now()
            sample = row.work(stage, side, quick)
            others = before.others_until(Moment.now())
            samples[side].append(sample._replace(load=load, others=others))
    progress(report.text([row], {row.key: samples}))
    return samples


def _wanted(row: Row, only: Sequence[str]) -> bool:
    return not only or row.key.startswith(tuple(only))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gateway", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"default: {ROUNDS}")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ROW", help="rows whose keys begin so (--list)"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write the results")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    return parser.parse_args()


if __name__ == "__main__":
    main()
