"""The arguments of `aclbroker who-can|what-can|explain|can|diff|prove|lint|history`; what these do.

Their imports take place only when a command runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aclbroker.cli.history import add_history, told
from aclbroker.cli.lint import add_lint, linted
from aclbroker.cli.rules_source import KAFKA, SourceError, add_source, principal, source_of
from aclbroker.cli.words import TYPES_HELP, name_of, names_of, operation_of, type_of
from aclbroker.terminal import complain

if TYPE_CHECKING:
    from aclbroker.acl.reasoning.elsewhere import Elsewhere
    from aclbroker.acl.reasoning.rules import Rules
    from aclbroker.cli.answers import Answer
    from aclbroker.cli.proofs import Proof

_DAYS: Final = 90
"""How many days of usage are looked at."""


@dataclass(frozen=True, slots=True)
class QuestionCommand:
    """Answer a question about ACLs."""

    options: argparse.Namespace

    def run(self) -> int:
        """Run the command; return its status, 2 and a reason on standard error if it failed."""
        from aclbroker.cli.answers import write

        try:
            status, answer = _COMMANDS[self.options.command](self.options)
            write(answer, self.options.output)
        except (SourceError, ValueError) as error:
            complain(*(f"aclbroker: {line}" for line in str(error).split("\n")))
            return 2
        return status


def _who_can(options: argparse.Namespace) -> tuple[int, Answer]:
    from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT
    from aclbroker.acl.reasoning.questions import Reasoner
    from aclbroker.cli.answers import holders

    kind, operation = type_of(options.type), operation_of(options.operation)
    name = name_of(kind, options.name)
    is_prefix = name.endswith("*")
    key = (name[:-1], PREFIX) if is_prefix else (name, LITERAL)
    rules = _rules(options).related(kind, ROOT if name == "*" else key)
    reasoner = Reasoner(rules)
    found = list(reasoner.who_can(operation, kind, key, options.host))
    return 0, holders(reasoner, found, is_prefix=is_prefix)


def _what_can(options: argparse.Namespace) -> tuple[int, Answer]:
    from aclbroker.acl.reasoning.questions import Reasoner
    from aclbroker.cli.answers import regions

    rules = _rules(options)
    _tell_of_groups(rules)
    reasoner = Reasoner(rules)
    return 0, regions(reasoner.what_can(options.principal, options.host))


def _explain(options: argparse.Namespace) -> tuple[int, Answer]:
    from aclbroker.acl.reasoning.explain import explain
    from aclbroker.acl.reasoning.regions import Request
    from aclbroker.cli.answers import explanation

    if options.pattern is not None and options.record is None:
        raise ValueError("--pattern is the layout of the log that --record names")
    if options.record is not None or options.line is not None:
        return _explain_record(options)
    if options.principal is None or options.operation is None or options.type is None:
        raise ValueError("explain needs PRINCIPAL OPERATION TYPE [NAME], --record or --line")
    kind, operation = type_of(options.type), operation_of(options.operation)
    name = name_of(kind, options.name)
    rules = _rules(options)
    here = rules.on(kind, name)
    _tell_of_groups(here)
    where = _where(options, rules, here)
    request = Request(options.principal, where.address, operation, kind, name)
    found = explain(rules, request, from_anywhere=options.host is None)
    return 0, explanation(found, where.text)


def _explain_record(options: argparse.Namespace) -> tuple[int, Answer]:
    from aclbroker.acl.reasoning.explain import explain
    from aclbroker.cli.answers import explanation
    from aclbroker.cli.record_files import of_file
    from aclbroker.cli.records import of_line

    if options.principal is not None or options.host is not None:
        raise ValueError("a record says who asked for what from where: nothing can be said besides")
    if options.record is not None:
        recorded = of_file(options.record, options.pattern)
    else:
        recorded = of_line(options.line)
    request, rules = recorded.request, _rules(options)
    if recorded.others is None:
        _tell_of_groups(rules.on(request.resource_type, request.name))
    for note in recorded.notes:
        _note(note)
    found = explain(recorded.session_rules(rules), request)
    said = recorded.said
    if found.is_allowed is not recorded.is_allowed:
        said += "; these ACLs and settings decide otherwise"
    return 0, explanation(found, request.host, recorded=said)


def _can(options: argparse.Namespace) -> tuple[int, Answer]:
    from aclbroker.acl.reasoning.allowing import relevant, smallest_change
    from aclbroker.acl.reasoning.compound import needs_of, parts
    from aclbroker.cli.answers import activity
    from aclbroker.cli.mending import server_options

    names = names_of(options.resources)
    group, transactional_id = type_of("group") in names, type_of("transactional-id") in names
    needs = needs_of(
        options.activity,
        group=group,
        transactional=options.transactional or transactional_id,
        idempotent=options.idempotent,
    )
    for need in needs:
        if need.resource_type not in names and need.resource_type is not type_of("cluster"):
            word = need.resource_type.name.lower().replace("_", "-")
            raise ValueError(f"{options.activity} needs to know its {word}: add '{word} NAME'")
    rules = _rules(options)
    here = relevant(rules, needs, names)
    _tell_of_groups(here)
    where = _where(options, rules, here)
    asked = here, options.principal, where.address, needs, names
    found = list(parts(*asked))
    change = smallest_change(*asked, from_anywhere=options.host is None)
    answer = activity(found, where.text, change, server_options(options))
    return int(not all(part.is_allowed for part in found)), answer


def _where(options: argparse.Namespace, rules: Rules, here: Rules) -> Elsewhere:
    """Return from where a request comes: without --host from any address that no ACL names.

    ``here`` are those of the rules that decide. Raises ValueError for a host that is no address.
    """
    from aclbroker.acl.reasoning.elsewhere import Elsewhere, elsewhere
    from aclbroker.acl.reasoning.hosts import HostCut

    if options.host is None:
        return elsewhere(rules, options.principal, here)
    if not HostCut((), rules.cidr).at(options.host):
        raise ValueError(f"{options.host!r} is no address, and so no peer's")
    return Elsewhere(options.host, options.host)


def _rules(options: argparse.Namespace) -> Rules:
    """Return the rules of the options; print a note if the super users are unknown."""
    source = source_of(options)
    rules = source.rules()
    if not source.knows_super_users:
        is_cluster = (source.place or "").startswith(KAFKA)
        why = "a cluster does not reveal them" if is_cluster else "they are not among the ACLs"
        _note(f"Super users are not included: {why}. {_NAME_THEM}")
    return rules


_NAME_THEM: Final = "Name them with --super-user or --broker-properties FILE."


def _tell_of_groups(*sets: Rules) -> None:
    """Print a note if there are ACLs for groups whose members are unknown."""
    from aclbroker.acl.groups import GROUP

    if any(
        not rules.groups and any(acl.principal.startswith(GROUP) for acl in rules.acls)
        for rules in sets
    ):
        _note("some of these ACLs are for groups; --groups-file tells who is in them")


def _note(text: str) -> None:
    complain(f"aclbroker: {text}")


def _diff(options: argparse.Namespace) -> tuple[int, Answer]:
    from aclbroker.acl.reasoning.difference import compare
    from aclbroker.cli.answers import differences
    from aclbroker.cli.lost_use import lost_use

    if options.usage is None and (options.days is not None or options.cluster is not None):
        raise ValueError("--days and --cluster say which usage to look at: name it with --usage")
    old, new = _sides(options)
    _tell_of_groups(old, new)
    compared = compare(old, new)
    if options.usage is None:
        return int(bool(compared.differences)), differences(compared)
    days = _DAYS if options.days is None else options.days
    use = lost_use(old, new, compared, options.usage, days, options.cluster)
    return int(bool(compared.differences or use.besides)), differences(compared, use)


def _sides(options: argparse.Namespace) -> tuple[Rules, Rules]:
    """Return both sets of rules; leave out super users that one side cannot name, with a note."""
    from aclbroker.broker.urls import without_login

    sources = source_of(options, options.old), source_of(options, options.new)
    old, new = (source.rules() for source in sources)
    if sources[0].has_settings is sources[1].has_settings:
        return old, new
    unknown = without_login(options.new if sources[0].has_settings else options.old)
    _note(f"Super users are left out of the comparison: {unknown} does not name them. {_NAME_THEM}")
    if old.allow_everyone_if_no_acl_found is not new.allow_everyone_if_no_acl_found:
        _note(
            f"{unknown} does not tell allow.everyone.if.no.acl.found, which is true on the other "
            "side. If it holds on both, add --allow-everyone-if-no-acl-found."
        )
    return sources[0].without_super_users(old), sources[1].without_super_users(new)


def _prove(options: argparse.Namespace) -> tuple[int, Answer]:
    from pathlib import Path

    from aclbroker.acl.files.invariants import read_invariants
    from aclbroker.acl.reasoning.questions import Reasoner
    from aclbroker.cli.proofs import proofs, write_junit, write_sarif

    try:
        statements = read_invariants(Path(options.file))
        found = proofs(Reasoner(_rules(options)), statements, options.file)
        if options.junit is not None:
            write_junit(found, options.file, Path(options.junit))
        if options.sarif is not None:
            write_sarif(found, options.file, Path(options.sarif))
    except OSError as error:
        raise SourceError(f"{error.filename}: {error.strerror or error}") from error
    return int(not all(proof.holds for proof in found)), _proven(found)


def _proven(found: Sequence[Proof]) -> Answer:
    from aclbroker.cli.answers import Answer

    rows = [
        {
            "line": proof.statement.line,
            "statement": proof.statement.text,
            "holds": proof.holds,
            "counterexample": proof.shown,
        }
        for proof in found
    ]
    lines = []
    for proof in found:
        lines.append(f"{'holds' if proof.holds else 'FAILS'}: {proof.statement.text}")
        if proof.shown is not None:
            lines.append(f"    {proof.shown}")
    failed = sum(not proof.holds for proof in found)
    lines.append(f"{len(found) - failed} hold, {failed} do not")
    return Answer(rows, lines)


_COMMANDS: Final[dict[str, Callable[[argparse.Namespace], tuple[int, Answer]]]] = {
    "who-can": _who_can,
    "what-can": _what_can,
    "explain": _explain,
    "can": _can,
    "diff": _diff,
    "prove": _prove,
    "lint": linted,
    "history": told,
}
NAMES: Final = frozenset(_COMMANDS)
"""The commands of this module."""


def add_questions(commands: Any) -> None:
    """Add the commands to the subparsers of `aclbroker`."""
    who = _command(commands, "who-can", "list everybody who may do something")
    who.add_argument("operation", metavar="OPERATION", help="such as WRITE")
    who.add_argument("type", metavar="TYPE", help=TYPES_HELP)
    who.add_argument(
        "name", metavar="NAME", nargs="?", help="a name, or PREFIX* for all names that begin so"
    )
    what = _command(commands, "what-can", "list all that somebody may do")
    what.add_argument("principal", metavar="PRINCIPAL", type=principal)
    why = _command(commands, "explain", "tell why a request is allowed or denied")
    why.add_argument("principal", metavar="PRINCIPAL", type=principal, nargs="?")
    why.add_argument("operation", metavar="OPERATION", nargs="?", help="such as READ")
    why.add_argument("type", metavar="TYPE", nargs="?", help=TYPES_HELP)
    why.add_argument("name", metavar="NAME", nargs="?")
    record = why.add_mutually_exclusive_group()
    record.add_argument(
        "--record",
        metavar="FILE",
        help="instead of a request: an audit log, or - for stdin, whose last denial is explained",
    )
    record.add_argument(
        "--line",
        metavar="TEXT",
        help="instead: a line of an audit log behind any prefix, or the message in it",
    )
    why.add_argument(
        "--pattern",
        metavar="PATTERN",
        help="the conversion pattern of Kafka's log in log4j's configuration, for --record; "
        "by default a look at the log finds the layout",
    )
    can = _command(commands, "can", "tell whether somebody has all rights that an activity needs")
    can.add_argument("principal", metavar="PRINCIPAL", type=principal)
    can.add_argument("activity", metavar="ACTIVITY", help="such as produce or consume")
    can.add_argument(
        "resources",
        metavar="TYPE NAME",
        nargs="+",
        help="such as topic orders group app; cluster has no name",
    )
    can.add_argument("--transactional", action="store_true", help="with a transactional id")
    can.add_argument("--idempotent", action="store_true", help="with enable.idempotence")
    for parser in (who, what, why, can):
        parser.add_argument("--host", metavar="ADDRESS", help="the address of the client")
        add_source(parser)
    prove = _command(commands, "prove", "check statements that must be true of all requests")
    prove.add_argument(
        "-f", "--file", metavar="FILE", required=True, help="the statements, as YAML"
    )
    prove.add_argument("--junit", metavar="FILE", help="write the outcome as JUnit XML, too")
    prove.add_argument("--sarif", metavar="FILE", help="write what does not hold as SARIF 2.1.0")
    add_source(prove)
    add_lint(_command(commands, "lint", "list the ACLs that are useless, mistaken or dangerous"))
    add_history(_command(commands, "history", "tell who granted and revoked which ACLs, and when"))
    diff = _command(commands, "diff", "list every right that one set of ACLs has and not another")
    add_source(diff, positional=("OLD", "NEW"))
    diff.add_argument(
        "--usage",
        metavar="TABLES",
        help="what `aclbroker audit ingest` wrote: tell which of the lost rights were used by whom",
    )
    diff.add_argument(
        "--days",
        metavar="N",
        type=_positive,
        help=f"how many days of the usage, to its last one (default: {_DAYS})",
    )
    diff.add_argument("--cluster", metavar="NAME", help="the cluster, if the usage is of several")


def _command(commands: Any, name: str, does: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=does, description=f"{does[0].upper()}{does[1:]}.", allow_abbrev=False
    )
    command.add_argument("--output", choices=("text", "json", "yaml", "csv"), default="text")
    return command


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days above 0")
    return int(text)


def question_command(options: argparse.Namespace) -> QuestionCommand:
    """Return the command that parsed arguments describe."""
    return QuestionCommand(options)
