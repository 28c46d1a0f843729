"""Shows results: as tables for the terminal, as the page RESULTS.md, and a few in README.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmarks.results import Figures, Results
from benchmarks.rows import KAFKA, KFAKE, OURS

NAMES = {OURS: "aclbroker", KAFKA: "Kafka 4.3.0", KFAKE: "kfake"}
NOTHING = "-"

GROWTH_TARGETS = {"authorize-unseen": 2.0, "authorize-seen": 2.0}
"""By row name: how many times the figure of the fewest ACLs that of the most may be."""

README_BEGIN, README_END = "<!-- speed begin -->", "<!-- speed end -->"
README_ROWS = (
    "authorize-unseen-10k",
    "authorize-unseen-505k",
    "by-type-changed-505k",
    "metadata-110k",
    "describe-all-10k",
    "describe-principal-110k",
    "create-1000-110k",
    "create-one-10k",
    "small-per-core-10k",
    "start-0",
    "memory-0",
    "memory-grown-110k",
)

INTRODUCTION = """\
# Results

Written by `{command}`. This product and its peers ran on the same machine in the same run, in turn
within each round. A figure is the median of the rounds. A ratio says how many times as good as the
peer aclbroker is (as fast, as small, as many), as median (lowest-highest) of the ratios of single
rounds: the machine's own speed is no part of it. In process, times are CPU times of the thread that
asks; on the wire, they are what a client waits, who sends requests encoded beforehand over a raw
socket. aclbroker keeps ACLs durably in a file, Kafka in its replicated log, kfake in memory only.
[LIMITS.md](LIMITS.md) says what limits the rows, with profiles.
"""


def text(results: Results) -> str:
    """Return the results as tables for a terminal."""
    parts = []
    for section in _sections(results):
        header, *lines = _table(results, section)
        table = [(section, *header[1:]), *lines]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        parts.append("\n".join(_aligned(line, widths) for line in table))
    parts.append("\n".join(f"{name}: {value}" for name, value in results.run.items()))
    return "\n\n".join(parts) + "\n"


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if column == 0 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


def page(results: Results) -> str:
    """Return the results as RESULTS.md."""
    parts = [INTRODUCTION.format(command=results.run.get("command", "make bench"))]
    parts.append(_markdown(("", ""), results.run.items()))
    for section in _sections(results):
        parts.append(f"## {section}\n")
        if section in results.later:
            parts.append(_other_run(results.later[section]))
        header, *lines = _table(results, section)
        parts.append(_markdown(header, lines))
        parts.extend(_notes(results, section))
    growth = list(_growth(results))
    if growth:
        parts.append(
            "## Growth\n\nHow many times what it costs with the fewest ACLs an operation costs "
            "with the most.\n"
        )
        parts.append(_markdown(("", "ACLs", NAMES[OURS], NAMES[KAFKA], "target", ""), growth))
    return "\n".join(parts)


def _other_run(run: Mapping[str, str]) -> str:
    words = [f"`{run['command']}`", *(run[name] for name in ("date", "load", "aclbroker"))]
    return f"Measured by another run: {'; '.join(words)}.\n"


def in_readme(results: Results, readme: str) -> str:
    """Return README.md with the most telling rows between its marks.

    Raises ValueError if it has no marks.
    """
    before, mark, rest = readme.partition(README_BEGIN)
    _, end_mark, after = rest.partition(README_END)
    if not (mark and end_mark):
        raise ValueError(f"README.md needs the lines {README_BEGIN} and {README_END}")
    lines = [
        (_title(figures), _figure(figures, OURS), _figure(figures, KAFKA), _figure(figures, KFAKE))
        for key in README_ROWS
        if (figures := results.figures.get(key)) is not None
    ]
    header = ("", NAMES[OURS], NAMES[KAFKA], NAMES[KFAKE])
    return f"{before}{mark}\n{_markdown(header, lines)}{end_mark}{after}"


def _sections(results: Results) -> list[str]:
    return list(dict.fromkeys(figures.row.section for figures in results.figures.values()))


def _table(results: Results, section: str) -> list[tuple[str, ...]]:
    """Return a header and the lines of a section; peers that take no part in it have no columns."""
    shown = [each for each in results.figures.values() if each.row.section == section]
    peers = [peer for peer in (KAFKA, KFAKE) if peer == KAFKA or any(map(_has(peer), shown))]
    columns = list(dict.fromkeys(each.row.title for each in shown if each.row.beside))
    beside = {(each.row.beside, each.row.title): each for each in shown}
    header = ["", NAMES[OURS]]
    for peer in peers:
        header += [NAMES[peer], "ratio"]
    table = [(*header, "target", "", *columns)]
    for figures in shown:
        if not figures.row.beside:
            line = [_title(figures), _figure(figures, OURS)]
            for peer in peers:
                line += [_figure(figures, peer), _ratio(figures, peer)]
            line += [_target(figures), _verdict(figures.reached)]
            line += [_both(beside.get((figures.row.key, title))) for title in columns]
            table.append(tuple(line))
    return table


def _has(peer: str) -> Callable[[Figures], bool]:
    return lambda figures: peer in figures.rounds


def _both(figures: Figures | None) -> str:
    """Return this product's figure and Kafka's in one cell."""
    if figures is None:
        return NOTHING
    return f"{_figure(figures, OURS)}, {_figure(figures, KAFKA)}"


def _notes(results: Results, section: str) -> Iterator[str]:
    notes: dict[str, list[str]] = {}
    for figures in results.figures.values():
        if figures.row.section == section and figures.row.note:
            titles = notes.setdefault(figures.row.note, [])
            if figures.row.title not in titles:
                titles.append(figures.row.title)
    if notes:
        yield "".join(f"- {'; '.join(titles)}: {note}\n" for note, titles in notes.items())


def _growth(results: Results) -> Iterator[tuple[str, ...]]:
    """Yield the rows that were measured with several numbers of ACLs, but not what adds them."""
    families: dict[str, list[Figures]] = {}
    for figures in results.figures.values():
        if figures.row.acls:
            families.setdefault(figures.row.name, []).append(figures)
    for name, family in families.items():
        family.sort(key=lambda figures: figures.row.acls or 0)
        ours = _grown(family, OURS)
        if ours is None:
            continue
        target = GROWTH_TARGETS.get(name)
        kafkas = _grown(family, KAFKA)
        yield (
            family[0].row.title,
            f"{ours[1]:,} to {ours[2]:,}",
            f"{ours[0]:.2f}x",
            NOTHING if kafkas is None else f"{kafkas[0]:.3g}x (to {kafkas[2]:,})",
            NOTHING if target is None else f"<= {target:g}x",
            _verdict(None if target is None else ours[0] <= target),
        )


def _grown(family: Sequence[Figures], side: str) -> tuple[float, int, int] | None:
    measured = [figures for figures in family if figures.rounds.get(side)]
    if len(measured) < 2:
        return None
    least, most = measured[0], measured[-1]
    few, many = (statistics.median(each.rounds[side]) for each in (least, most))
    factor = few / many if least.row.is_rate else many / few
    return factor, least.row.acls or 0, most.row.acls or 0


def _title(figures: Figures) -> str:
    row = figures.row
    return row.title if row.acls is None else f"{row.title}, {row.acls:,} ACLs"


def _figure(figures: Figures, side: str) -> str:
    median = figures.median(side)
    return NOTHING if median is None else f"{number(median)} {figures.row.unit}"


def _ratio(figures: Figures, peer: str) -> str:
    ratios = figures.advantages(peer)
    if not ratios:
        return NOTHING
    middle, least, most = statistics.median(ratios), ratios[0], ratios[-1]
    return f"{number(middle)}x ({number(least)}-{number(most)})"


def _target(figures: Figures) -> str:
    row = figures.row
    if row.target is None:
        return NOTHING
    return f"{'>=' if row.is_rate else '<='} {number(row.target)} {row.unit}"


def _verdict(reached: bool | None) -> str:
    return {True: "reached", False: "missed", None: ""}[reached]


def number(value: float) -> str:
    """Return a figure with as many digits as mean something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".") if value >= 1 else f"{value:.2g}"


def _markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(header) - 1) if len(header) > 2 else ["---"] * len(header)
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))
