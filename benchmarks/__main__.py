"""Compares this product with its peers.

    python -m benchmarks [--quick] [--rounds N] [--only ROW ...] [--list]

A complete run writes results.json and RESULTS.md beside this file, docs/images/growth.png, and the
table in README.md. One with --quick or --only prints alone. With --output any run writes the first
three, into that directory. With --add the sections that a run has measured are put in place of
those that results.json and RESULTS.md have; name all rows of a section.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from benchmarks import (
    attacks,
    data,
    environment,
    fuzz,
    hidden_names,
    in_process,
    plot,
    questions,
    report,
    stores,
    variants,
    wire,
    workers,
)
from benchmarks.results import Results
from benchmarks.rows import KAFKA, KFAKE
from benchmarks.running import Options, progress

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
IMAGES = HERE.parent / "docs" / "images"
ROUNDS, QUICK_ROUNDS = 5, 2
SCENES = (in_process, questions, wire, variants, workers, stores, data, attacks, fuzz, hidden_names)


def main() -> None:
    """Measure what the arguments name, print it, and write it down."""
    arguments = _arguments()
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    options = Options(rounds, arguments.quick, tuple(arguments.only), tuple(arguments.peers))
    if arguments.list:
        for scene in SCENES:
            for row in scene.rows():
                if not row.beside:
                    print(f"{row.key:28} {row.title}")
        return
    results = Results(environment.describe(_command(arguments, options)))
    try:
        for scene in SCENES:
            scene.measure(results, options)
    except (pytest.skip.Exception, pytest.fail.Exception) as error:
        sys.exit(f"A peer cannot be run: {error}. --peers leaves peers out.")
    print(report.text(results))
    whole = not (arguments.quick or arguments.only) and len(options.peers) == 2
    if arguments.output:
        write(results, arguments.output, arguments.output)
    elif arguments.add:
        known = Results.load(HERE / "results.json")
        known.take(results)
        write(known, HERE, IMAGES)
    elif whole:
        write(results, HERE, IMAGES)
        README.write_text(report.in_readme(results, README.read_text()))


def write(results: Results, directory: Path, images: Path) -> None:
    """Write results.json, RESULTS.md and growth.png."""
    for each in (directory, images):
        each.mkdir(parents=True, exist_ok=True)
    results.save(directory / "results.json")
    (directory / "RESULTS.md").write_text(report.page(results))
    plot.draw(results, images / "growth.png")
    progress(f"written: {directory / 'RESULTS.md'}")


def _command(arguments: argparse.Namespace, options: Options) -> str:
    """Return the command that repeats a run, wherever its results went."""
    words = ["python", "-m", "benchmarks"]
    if options.quick:
        words.append("--quick")
    if arguments.rounds:
        words.append(f"--rounds {arguments.rounds}")
    if options.only:
        words += ["--only", *options.only]
    if options.peers != (KAFKA, KFAKE):
        words += ["--peers", *options.peers]
    return " ".join(words)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no large sizes")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"default: {ROUNDS}")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ROW", help="rows whose keys begin so (--list)"
    )
    parser.add_argument(
        "--peers", nargs="*", default=[KAFKA, KFAKE], choices=[KAFKA, KFAKE], help="default: both"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write the results")
    parser.add_argument(
        "--add", action="store_true", help="put what was measured into the results that there are"
    )
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    return parser.parse_args()


if __name__ == "__main__":
    main()
