"""Rewrites the tables of docs/configuration.md: `python -m aclbroker.broker.config.docs FILE`.

What stands outside the two markers is written by hand and kept.
"""

import sys
from pathlib import Path

from aclbroker.broker.config.definition import Definition, Scope
from aclbroker.broker.config.definitions import SECTIONS

_BEGIN = "<!-- tables begin -->\n"
_END = "<!-- tables end -->\n"


def render(text: str) -> str:
    """The text with the tables between its markers brought up to date."""
    head, _, rest = text.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    sections = (
        f"\n## {title}\n\n| Setting | Default | Allowed | Meaning |\n|---|---|---|---|\n"
        + "".join(_row(row) for row in rows)
        for title, rows in SECTIONS.items()
    )
    return f"{head}{_BEGIN}{''.join(sections)}\n{_END}{tail}"


def _row(row: Definition) -> str:
    name = {
        Scope.BROKER: f"`{row.name}`",
        Scope.EITHER: f"`{row.name}` ¹",
        Scope.CLUSTER: f"`{row.name}`",
        Scope.LISTENER: f"`listener.name.<listener>.{row.name}`",
    }[row.scope]
    default = row.default_doc or (f"`{row.default}`" if row.default else "(empty)")
    # Markdown takes [n:string](regexp) for a link.
    allowed = row.type.allowed.replace("](", r"]\(")
    return f"| {name} | {default} | {allowed} | {row.doc} |\n"


def main(path: str) -> None:
    """Rewrite the file."""
    file = Path(path)
    file.write_text(render(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])
