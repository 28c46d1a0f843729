"""Files of kafka-acls.sh commands, as the sets of ACLs that questions are about."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aclbroker.acl.bindings import AclBinding, AclOperation
from aclbroker.acl.files.policy import Policy, PolicyError, write_policy
from aclbroker.cli.acl_files import acls_of_file
from aclbroker.cli.acls.lines import ANY_SERVER, add_line, remove_line
from aclbroker.cli.acls.script import is_script, parse_script
from aclbroker.cli.acls.shell import HOLE, Shell, ShellError
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from aclbroker.pipeline.acls.commands import inexpressible_reason, script
from tests.acl.examples import CLUSTER, CREATE, DESCRIBE, GROUP, PREFIXED, READ, WRITE, allow, deny
from tests.pipeline.acls.test_commands import awkward_acls
from tests.support.tables import check_each

TOOL = "kafka-acls.sh --bootstrap-server localhost:9092"
ADD = f"{TOOL} --add --allow-principal User:a --operation Read"
REMOVE = f"{TOOL} --remove --force --allow-principal User:a --operation Read"
READS, READS_TOO = allow("User:a", READ, "t"), allow("User:a", READ, "u")

Acls = Callable[[str], set[AclBinding]]
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def acls(tmp_path: Path) -> Acls:
    """The ACLs that a text makes."""

    def read(text: str) -> set[AclBinding]:
        return set(parse_script(text, f"{tmp_path}/acls.sh").acls)

    return read


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command; return its status, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        command = parse_arguments(words)
        assert isinstance(command, QuestionCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out, err

    return run


COMMANDS = [
    (f"{ADD} --topic t\n", {READS}),
    (f"{ADD} --topic t; {ADD} --topic u", {READS, READS_TOO}),
    (f"{ADD} --topic t \\\n  --topic 'u' # both\n", {READS, READS_TOO}),
    (f'# who reads\r\n{ADD} \\\r\n  --topic "t"\r\n', {READS}),
    (f'/opt/kafka/bin/{ADD} --topic t > log 2>&1 && echo "User:a reads"', {READS}),
    (f"sudo -u kafka {ADD} --topic t>/dev/null || exit 1", {READS}),
    (f"yes | {ADD} --topic t |\n  tee log", {READS}),
    (f"{ADD} --topic t\nexit 0\n{ADD} --topic u", {READS}),
    (f"A='{TOOL} --add'\n$A --allow-principal User:a --operation Read --topic t", {READS}),
    (f"$KAFKA/bin/{ADD} --topic t", {READS}),
    (f"kafka-topics.sh --create --topic t\ndocker exec broker {ADD} --topic t", {READS}),
    ("aclbroker " + ADD.removeprefix("kafka-").replace(".sh", "") + " --topic t", {READS}),
    ('export LC_ALL=C HOME\nset -eu\n: "${BOOTSTRAP:?host:port}"\nsleep 1\n', set()),
    (f"{TOOL} --list\n{TOOL} --list --topic t", set()),
    (
        f"{TOOL} --add --allow-principal User:a --allow-principal User:b "
        "--deny-principal User:c --allow-host 10.0.0.1 --operation Read --operation Describe "
        "--topic t --group g",
        {
            *(
                allow(user, each, name, resource_type=kind, host="10.0.0.1")
                for user in ("User:a", "User:b")
                for each in (READ, DESCRIBE)
                for name, kind in (("t", READS.resource_type), ("g", GROUP))
            ),
            *(
                deny("User:c", each, name, resource_type=kind)
                for each in (READ, DESCRIBE)
                for name, kind in (("t", READS.resource_type), ("g", GROUP))
            ),
        },
    ),
    (
        f"{TOOL} --add --allow-principal User:a --producer --idempotent --topic t- "
        "--resource-pattern-type prefixed",
        {
            allow("User:a", WRITE, "t-", pattern_type=PREFIXED),
            allow("User:a", DESCRIBE, "t-", pattern_type=PREFIXED),
            allow("User:a", CREATE, "t-", pattern_type=PREFIXED),
            allow("User:a", AclOperation.IDEMPOTENT_WRITE, "kafka-cluster", resource_type=CLUSTER),
        },
    ),
    (
        f"{TOOL} --add --allow-principal User:a --consumer --topic t --group g",
        {
            READS,
            allow("User:a", DESCRIBE, "t"),
            allow("User:a", READ, "g", resource_type=GROUP),
        },
    ),
]


def test_commands_make_the_acls_that_the_tool_would(acls: Acls) -> None:
    def check(case: tuple[str, set[AclBinding]]) -> None:
        text, expected = case
        assert acls(text) == expected

    check_each(COMMANDS, check)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REMOVE + " --topic t", {READS_TOO}),
        (REMOVE + " --topic t --topic u", set()),
        (REMOVE + " --topic other", {READS, READS_TOO}),
        (REMOVE + " --topic t --resource-pattern-type prefixed", {READS, READS_TOO}),
        (REMOVE + " --topic t --resource-pattern-type any", {READS_TOO}),
        (f"{TOOL} --remove --force --topic t", {READS_TOO}),
        (f"{TOOL} --remove --force --topic t --resource-pattern-type match", {READS_TOO}),
        (f"{REMOVE} --topic t\n{ADD} --topic t", {READS, READS_TOO}),
    ],
)
def test_a_removal_takes_away_what_was_added_before(
    text: str, expected: set[AclBinding], acls: Acls
) -> None:
    assert acls(f"{ADD} --topic t --topic u\n{text}\n") == expected


@pytest.mark.parametrize(
    "text",
    [
        'T=t\nkafka-acls.sh --bootstrap-server "$BOOTSTRAP" --add --allow-principal "User:$A" '
        '--operation Read --topic "${T}"',
        'OPTIONS="--bootstrap-server x:1 --add"\nexport T=t\n'
        "kafka-acls.sh $OPTIONS --allow-principal User:a --operation Read --topic ${T:-u}",
        'kafka-acls.sh --bootstrap-server "$(hostname -f):9092" '
        '${CONFIG:+"--command-config=$CONFIG"} --add --allow-principal User:a '
        "--operation Read --topic ${T:-t}",
        'kafka-acls.sh --bootstrap-server "${1}" --command-config "$2" --add '
        "--allow-principal User:${A:+a} --operation Read --topic t",
    ],
)
def test_variables_that_the_file_sets_count_and_how_to_reach_the_cluster_is_left_open(
    text: str, acls: Acls
) -> None:
    assert acls(f"A=a\n{text}\n") == {READS}


NOT_UNDERSTOOD = [
    (f"\n{ADD} --topic $T", "line 2: the file does not say what $T is"),
    (f"{ADD} $MORE --topic t", "line 1: the file does not say what $MORE is"),
    (f"T=t\n{ADD} --topic ${{T%x}}", "line 2: the file does not say what ${T%x} is"),
    (f'{ADD} --topic "$(cat topics)"', "line 1: the file does not say what $(cat topics) is"),
    (f"{ADD} \\\n --topic `cat topics`", "line 1: the file does not say what `cat topics` is"),
    (f"{ADD} --topic t\nfor t in a b; do\n{ADD} --topic t\ndone", "line 2: 'for' is not under"),
    (f"{ADD} --topic t\n\nsource more.sh", "line 3: 'source' is not understood"),
    (f"$ACLS {ADD.partition(' ')[2]} --topic t", "line 1: '$ACLS' is not understood"),
    ("${A:-" * 3000, "line 1: "),
    (f"cat t | while read t; do {ADD} --topic t; done", "line 1: 'cat' is not understood"),
    (f"echo t | xargs {ADD} --topic", "line 1: 'xargs' is not understood"),
    (f"false || {ADD} --topic t", "line 1: 'false' is not understood"),
    (f"{ADD} --topic t || {ADD} --topic u", "line 1: a command behind || runs only if"),
    (f"{ADD} --topic 't", "line 1: a ' is not closed"),
    (f'{ADD} --topic t\n{ADD} --topic "t', 'line 2: a " is not closed'),
    (f"{ADD} --topic $(t", "line 1: a $( is not closed"),
    (f"{ADD} --topic ${{T:-t", "line 1: a ${ is not closed"),
    (f"({ADD} --topic t)", "line 1: '(' is not understood here"),
    (f"{ADD} --topic t << END\nEND", "line 1: << is not understood"),
    (f"{ADD} --topics t", "line 1: topics is not a recognized option"),
    (f"{ADD} --topic", "line 1: Option topic requires an argument"),
    (f"{TOOL} --topic t", "line 1: Command must include exactly one action"),
    (ADD, "line 1: You must provide at least one resource"),
    (f"{ADD} --group g --operation Write", "line 1: ResourceType GROUP only supports"),
    (f"{TOOL} --add --allow-principal a --topic t", "line 1: expected a string in format"),
    ("kafka-acls.sh --add --topic t", "line 1: One of --bootstrap-server or"),
    (f"{ADD} --topic t --resource-pattern-type match", "line 1: A '--resource-pattern-type'"),
    (f"{ADD} --topic ''", "line 1: "),
]


def test_what_is_not_understood_is_told_with_its_line(acls: Acls) -> None:
    def check(case: tuple[str, str]) -> None:
        text, said = case
        with pytest.raises(PolicyError) as error:
            acls(text)
        path, place, _ = str(error.value).partition("acls.sh: line ")
        assert path
        assert place
        assert said in str(error.value)
        assert str(error.value).isprintable()

    check_each(NOT_UNDERSTOOD, check)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    for content, said in ((b"\xff", "utf-8"), (b"echo \0", "bytes that are 0")):
        with pytest.raises(PolicyError, match=said):
            acls_of_file(content, f"{tmp_path}/acls.sh")


def test_the_pipelines_scripts_are_read_as_the_acls_that_they_were_made_of(acls: Acls) -> None:
    wanted = {acl for acl in awkward_acls(300) if inexpressible_reason(acl) is None}
    assert len(wanted) > 100
    assert acls("".join(script("what if", wanted))) == wanted
    some = set(sorted(wanted)[::2])
    assert acls("".join(script("first", wanted)) + "".join(script("then", (), some))) == (
        wanted - some
    )


def test_the_commands_that_lint_proposes_are_read(acls: Acls) -> None:
    lines = [add_line([READS], ANY_SERVER), add_line([READS_TOO], ANY_SERVER)]
    assert acls("\n".join(lines)) == {READS, READS_TOO}
    assert acls("\n".join([*lines, remove_line([READS], ANY_SERVER)])) == {READS_TOO}


SCRIPTS = [
    ("acls.sh", "", True),
    ("acls", "#!/usr/bin/env bash\n", True),
    ("acls.txt", f"\n# first\n  {ADD} --topic t\n", True),
    ("acls.txt", "BOOTSTRAP=localhost:9092\n", True),
    ("acls.txt", "aclbroker acls --list", True),
    ("acls.txt", "", False),
    ("policy.yaml", "# of kafka-acls.sh\nversion: 1\n", False),
    ("listing", "Current ACLs for resource `ResourcePattern(", False),
]


def test_a_script_is_known_by_its_name_or_its_first_line() -> None:
    def check(case: tuple[str, str, bool]) -> None:
        name, text, expected = case
        assert is_script(text, name) is expected

    check_each(SCRIPTS, check)


def test_questions_are_answered_from_a_script_and_two_sets_compared(
    ask: Ask, tmp_path: Path
) -> None:
    commands, policy = tmp_path / "acls.sh", tmp_path / "policy.yaml"
    commands.write_text(f"{ADD} --topic t --topic u\n")
    write_policy(Policy([READS]), policy)
    who = ask("who-can", "READ", "topic", "t", "--acls", str(commands))
    assert who[:2] == (0, "User:a from any host\n")
    status, out, _ = ask("diff", str(policy), str(commands))
    assert status == 1
    assert out.startswith("+ User:a: READ, DESCRIBE on TOPIC LITERAL u from any host\n")
    commands.write_text(f"{ADD} --topic t --topic u\n{REMOVE} --topic u\n")
    assert ask("diff", str(commands), str(policy))[0] == 0


def test_a_mistake_in_a_script_is_told_on_standard_error(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "acls.sh"
    file.write_text(f"{ADD} --topic t\n{ADD} --topc u\n")
    assert ask("what-can", "User:a", "--acls", str(file)) == (
        2,
        "",
        f"aclbroker: {file}: line 2: topc is not a recognized option\n",
    )
    absent = str(tmp_path / "absent.sh")
    status, _, err = ask("what-can", "User:a", "--acls", absent)
    assert (status, err) == (2, f"aclbroker: {absent}: No such file or directory\n")


def test_acls_that_a_script_names_in_comments_alone_are_told(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "acls.sh"
    file.write_text("".join(script("two", [READS, allow("User:a", READ, "t ")])))
    status, _, err = ask("what-can", "User:a", "--acls", str(file))
    assert status == 0
    assert "1 ACLs stand in comments alone ('# Not done'), and are left out" in err


PIECES = ["a", "b=", "'x y'", "' '", '"x y"', '"$V"', "$V/", "${V}", "${V:-d}", "${N:-d e}", "\\ "]
PIECES += [
    "$/",
    "a}",
    '"a\\\nb"',
    "${V-d}",
    "${N+w}",
    "${V:+w}",
    '"${N:+w}"',
    "a#c",
    "\\\n",
    '"\\$\\a"',
    "''",
    '"',
    "'",
    "\\",
    "-",
    "*x",
    "{}",
]
SPACES = ["", "", " ", "\t", " \\\n "]


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SPACES)), max_size=8))
def test_words_are_those_of_a_posix_shell(pieces: list[tuple[str, str]]) -> None:
    text = "".join(piece + space for piece, space in pieces)
    shell = Shell(f"END {text}\n")
    shell.variables["V"] = "v  w"
    try:
        first, *others = list(shell.commands())
    except ShellError:
        first, others = None, []
    # A line break behind a lone backslash begins a second command, of which sh knows nothing.
    assume(not others)
    environment = {**os.environ, "V": ""}
    done = subprocess.run(
        ["sh", "-f"],
        input=f"V='v  w'; unset N; printf '%s\\0' END {text}\n",
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if first is None:
        assert done.returncode
        assert "nterminated" in done.stderr or "EOF" in done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert first.words == done.stdout.split("\0")[:-1]
        assert not any(HOLE in word for word in first.words)
