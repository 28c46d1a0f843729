"""Statements that were checked, and what CI systems read of that: JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.files.invariants import Statement
from aclbroker.acl.reasoning.invariants import Counterexample, counterexample
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.cli.sarif import write_results
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.terminal import printable


class Proof(NamedTuple):
    """A statement, whether it holds, and the sentence that shows that it does not."""

    statement: Statement
    holds: bool
    shown: str | None


def proofs(reasoner: Reasoner, statements: Iterable[Statement], source: str) -> list[Proof]:
    """Check statements; the authorizer confirms each counterexample.

    Raises ValueError, which names the place in the ``source``, for one that cannot be answered.
    """
    authorizer: StandardAuthorizerData | None = None
    found: list[Proof] = []
    for statement in statements:
        try:
            against = counterexample(reasoner, statement.invariant)
        except ValueError as error:
            place = f"{source}: line {statement.line}, column {statement.column}"
            raise ValueError(f"{place}: {error}") from None
        if against is not None and authorizer is None:
            authorizer = reasoner.rules.authorizer()
        shown = None if against is None else _shown(reasoner, authorizer, against)
        found.append(Proof(statement, against is None, shown))
    return found


def _shown(
    reasoner: Reasoner, authorizer: StandardAuthorizerData | None, against: Counterexample
) -> str:
    if against.acl is not None:
        return f"there is: {acl_text(against.acl)}"
    request = against.request
    if request is None or request.is_allowed(reasoner.rules, authorizer) != against.is_allowed:
        raise AssertionError(f"the authorizer does not confirm {against}")
    return f"{request}: {'allowed' if against.is_allowed else 'denied'}"


def write_junit(found: Sequence[Proof], source: str, path: Path) -> None:
    """Write a test case for each statement. Raises OSError."""
    failed = sum(not proof.holds for proof in found)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="aclbroker prove" tests="{len(found)}" failures="{failed}" errors="0">',
    ]
    for proof in found:
        case = (
            f"  <testcase classname={_attribute(source)} name={_attribute(proof.statement.text)} "
            f'line="{proof.statement.line}"'
        )
        if proof.shown is None:
            lines.append(f"{case}/>")
        else:
            lines.append(f"{case}><failure message={_attribute(proof.shown)}/></testcase>")
    path.write_text("\n".join([*lines, "</testsuite>", ""]), encoding="utf-8")


def _attribute(text: str) -> str:
    """Return a quoted attribute; XML has no control characters, not even escaped ones."""
    return quoteattr(printable(text))


def write_sarif(found: Sequence[Proof], source: str, path: Path) -> None:
    """Write a result for each statement that does not hold. Raises OSError."""
    results = [
        {
            "ruleId": "invariant",
            "level": "error",
            "message": {"text": f"{proof.statement.text}: does not hold: {proof.shown}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": Path(source).as_posix()},
                        "region": {
                            "startLine": proof.statement.line,
                            "startColumn": proof.statement.column,
                        },
                    }
                }
            ],
        }
        for proof in found
        if not proof.holds
    ]
    rules = {"invariant": "A statement about access"}
    write_results(path, "aclbroker prove", rules, results)
