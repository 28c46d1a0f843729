"""Draws how what is asked often grows with the number of ACLs: this product's, and Kafka's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import NAMES
from benchmarks.results import Figures, Results
from benchmarks.rows import KAFKA, OURS

PANELS = (
    (
        "authorize()",
        "microseconds",
        {"authorize-unseen": "name not seen before", "authorize-seen": "name seen before"},
    ),
    (
        "DescribeAcls",
        "milliseconds",
        {"describe-principal": "by principal", "describe-match": "MATCH one topic"},
    ),
)
COLOURS = {OURS: "#0b6e4f", KAFKA: "#c8553d"}
STYLES = ("-o", "--s")


def draw(results: Results, path: Path) -> None:
    """Write the picture as PNG. What was not measured is left out."""
    # Only who draws needs it.
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(10, 4), layout="constrained")
    for panel, (title, unit, names) in zip(axes, PANELS, strict=True):
        for (name, shown), style in zip(names.items(), STYLES, strict=True):
            for side, colour in COLOURS.items():
                points = _points(list(results.figures.values()), name, side)
                if points:
                    label = f"{NAMES[side]}, {shown}"
                    panel.plot(*zip(*points, strict=True), style, color=colour, label=label)
        panel.set(title=title, xlabel="ACLs", ylabel=unit, xscale="log", yscale="log")
        panel.grid(which="major", alpha=0.3)
        if panel.lines:
            panel.legend(fontsize=8)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def _points(all_figures: Sequence[Figures], name: str, side: str) -> list[tuple[int, float]]:
    return sorted(
        (figures.row.acls, median)
        for figures in all_figures
        if figures.row.name == name
        and figures.row.acls
        and (median := figures.median(side)) is not None
    )
