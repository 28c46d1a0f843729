"""Counts the words and forms of sentences that we avoid, and fails if a change adds one.

Python's docstrings, comments and messages (texts of at least three words) and the prose of Markdown
files are read. Each room, a folder, has a budget for each pattern: the count when it was last
lowered. `python tools/check_words.py` compares, `--show ROOM` prints each place, and `--lower`
writes lower counts as the new budget, as `make check` does. CONTRIBUTING.md says how to write.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
BUDGET: Final = ROOT / "tools" / "words_budget.json"
_NO_QUESTION: Final = r"(?![^.!]*\?)"
PATTERNS: Final = {
    "what": r"\bwhat (?:is|are|was|were|has|have|had|can|may|must|will|would|does|do|did)\b"
    + _NO_QUESTION,
    "tell": r"\b(?:tell|tells|telling|told)\b",
    "nobody": r"\b(?:nobody|somebody|anybody)(?! (?:but|may)\b)",
    "who": r"(?:^|[,;:(]\s|\b(?:of|to|for|by|from|with|than|and|or|but|if|as|is)\s)(?:who|whom)\b"
    + _NO_QUESTION
    + r"|\b(?:whoever|whomever)\b",
    "beginning": r"^(?-i:What|Who|Whoever|Whose|Of|That)\b" + _NO_QUESTION,
    "house words": r"\b(?:strangers?|gives? way|comes? to (?:its|an) end|let in|has its turn"
    r"|former times|need not be|there is no limit)\b",
    "long sentence": r"^(?:\S+\s+){29}\S+",
}
"""The patterns by name; a sentence of 30 words or more is long."""

_SEARCHED: Final = {name: re.compile(text, re.IGNORECASE) for name, text in PATTERNS.items()}
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n|\n\s*(?:[-*|#]|[0-9]+\.)\s|\s\|\s"
)
_CODE: Final = re.compile(
    r"```.*?```|~~~.*?~~~|^ {4}.*?$|``[^`]*``|`[^`]*`|<[^>]*>|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
# A regular expression, because Python's own module tokenize takes fourteen times as long.
_COMMENT_OR_STRING: Final = re.compile(
    r"""(?P<comment>\#[^\n]*)"""
    r"""|\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
_MESSAGE: Final = re.compile(r"\w+\W+\w+\W+\w+")


class Finding(NamedTuple):
    """A place of a pattern: the file, the line from 1 of its text, the pattern and the sentence."""

    path: str
    line: int
    pattern: str
    sentence: str


def room_of(path: str) -> str:
    """Return the room of a file: its folder, at most two levels below the package."""
    parts = Path(path).parent.parts
    depth = 4 if parts[:2] == ("src", "aclbroker") else 1
    return "/".join(parts[:depth]) or "."


def texts_of(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file, each text with its first line."""
    if path.endswith(".md"):
        yield 1, source
        return
    yield from comments_of(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = inspect.cleandoc(node.value)
            if _MESSAGE.search(text):
                yield node.lineno, text


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a Python file; comments of consecutive lines are one text."""
    block: list[str] = []
    end = start = 0
    line = 1
    for token in _COMMENT_OR_STRING.finditer(source):
        if token["comment"] is None:
            continue
        line += source.count("\n", start, token.start())
        start = token.start()
        if block and line != end + 1:
            yield end - len(block) + 1, "\n".join(block)
            block = []
        block.append(token["comment"].lstrip("#: "))
        end = line
    if block:
        yield end - len(block) + 1, "\n".join(block)


def findings(path: str, source: str) -> Iterator[Finding]:
    """Yield what the patterns find in a file."""
    for line, text in texts_of(path, source):
        prose = _CODE.sub(lambda code: "\n" * code[0].count("\n") or "x", text)
        start = 0
        for part in (*_SENTENCE_END.finditer(prose), None):
            sentence = prose[start : part.start() if part else len(prose)]
            place = line + prose[:start].count("\n")
            joined = " ".join(sentence.split())
            for name, pattern in _SEARCHED.items():
                for _ in pattern.finditer(joined):
                    yield Finding(path, place, name, joined)
            start = part.end() if part else start


def files_by_git(*words: str) -> list[str]:
    """Return the Python and Markdown files that a command of git lists."""
    command = ["git", *words, "--", "*.py", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def all_findings() -> Iterator[Finding]:
    """Yield what the patterns find in all Python and Markdown files of the repository."""
    for path in files_by_git("ls-files"):
        # A change log keeps its words, and generated messages have no prose of ours.
        if path != "CHANGELOG.md" and "/protocol/messages/" not in path and (ROOT / path).exists():
            yield from findings(path, (ROOT / path).read_text())


def compare(
    counts: Mapping[str, Mapping[str, int]], budget: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Return a line for each room and pattern with more findings than its budget."""
    return [
        f"{room}: {name!r} occurs {count} times; the budget is {budget.get(room, {}).get(name, 0)}"
        for room, found in sorted(counts.items())
        for name, count in sorted(found.items())
        if count > budget.get(room, {}).get(name, 0)
    ]


def show(found: Iterable[Finding]) -> None:
    """Print each place."""
    for each in found:
        print(f"{each.path}:{each.line}: {each.pattern}: {each.sentence}")


def main() -> None:
    """Compare with the budget; end with status 1 if a room has more findings than its budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", metavar="ROOM", help="print each place in a folder, such as docs")
    parser.add_argument("--lower", action="store_true", help="write lower counts as the budget")
    arguments = parser.parse_args()
    found = list(all_findings())
    if arguments.show:
        show(each for each in found if room_of(each.path) == arguments.show)
        return
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in found:
        counts[room_of(each.path)][each.pattern] += 1
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else counts
    if problems := compare(counts, budget):
        print("\n".join(problems), "\nThe places in the files that differ from the last commit:")
        changed = files_by_git("diff", "--name-only", "HEAD")
        show(each for each in found if each.path in changed)
        sys.exit(
            "Write these sentences in plain English (CONTRIBUTING.md); --show ROOM prints the "
            "places in a folder."
        )
    if (arguments.lower and budget != counts) or not BUDGET.exists():
        text = json.dumps(counts, indent=1, sort_keys=True)
        BUDGET.write_text(text + "\n")


if __name__ == "__main__":
    main()
