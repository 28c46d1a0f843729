"""No name in the output of a command controls the terminal, forges a line or breaks a table."""

import ast
import asyncio
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aclbroker
from aclbroker.acl.files.listing import parse_listing
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.acl.files.reading import read_acls
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.cli.acls.command import _print_acls
from aclbroker.cli.arguments import ServeCommand, parse_arguments
from aclbroker.terminal import csv_cell, is_plain, meant, printable, put, shown
from tests.acl.examples import ALL, GROUP, READ, allow, deny
from tests.stores.origins import ORIGIN
from tests.support.tables import examples

FORGERY = "User:a, host=*, operation=READ, permissionType=ALLOW)\n\t(principal=User:evil"
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NAMES = [
    "x\n\t(principal=User:evil, host=*, operation=ALL, permissionType=ALLOW)",
    "a\r\nb",
    "\x1b]0;title\x07",
    "\x9b2J",
    "a\u202eb",
    "a\u200bb",
    "a\ufe0fb",
    "a\u3164b",
    "a\u2028b",
    "a\x85b",
    "a\x7fb",
    "a\\nb\nc",
    "DOMAIN\\nina",
    "日本",
    "x, patternType=LITERAL)`: (escaped)",
    "=cmd|' /C calc'!A1",
    "\uff1d1+1",
    " =1+1",
    'a",b;c\tand',
]


@pytest.fixture
def run(capsys):
    def run(*words):
        command = parse_arguments(list(words))
        assert not isinstance(command, ServeCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out, err

    return run


def stored(path, acls):
    async def write():
        store = SqliteStore(path)
        await store.open()
        await store.apply(acls, [], ORIGIN)
        await store.close()

    asyncio.run(write())
    return f"sqlite:///{path}"


@given(st.text(), st.text(alphabet="\\nxu0a1\n\x1b"))
def test_an_escaped_text_is_one_plain_line_and_means_the_same(any_text, of_escapes):
    for text in (any_text, of_escapes):
        assert is_plain(shown(text))
        assert is_plain(printable(text))
        assert meant(shown(text)) == text


@pytest.mark.parametrize("text", ["a\\b", "a\\", "\\x1B", "\\u00", "\\Uffffffff"])
def test_what_is_no_escape_is_refused(text):
    with pytest.raises(ValueError, match=r"escape|no character"):
        meant(text)


def test_a_listing_of_a_store_is_read_back_exactly_whatever_its_names_are(run, tmp_path):
    acls = [allow(f"User:{name}", READ, name, host=name) for name in NAMES]
    acls += [deny("User:a", ALL, name, resource_type=GROUP) for name in NAMES]
    acls.append(allow(FORGERY))
    status, out, _ = run("acls", "--store", stored(tmp_path / "acls.db", acls))
    assert status == 0
    assert all(map(is_plain, out.replace("\t", "").split("\n")))
    listing = tmp_path / "listing"
    listing.write_text(out)
    found = read_acls(str(listing)).acls
    assert len(found) == len(acls)
    assert set(found) == set(acls)


def test_an_acl_whose_line_would_have_two_meanings_is_refused_and_never_another_one(run, tmp_path):
    out = run("acls", "--store", stored(tmp_path / "acls.db", [allow("User:a, host=b")]))[1]
    listing = tmp_path / "listing"
    listing.write_text(out)
    status, out, err = run("who-can", "READ", "topic", "orders", "--acls", str(listing))
    assert (status, out) == (2, "")
    assert f"{listing}: line 2: not one '(principal=" in err


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200))
@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_a_listing_of_any_names_is_read_back_exactly(capsys, names):
    acls = sorted({allow(f"User:{user}", READ, name or "x") for user, name in names})
    _print_acls(acls)
    assert list(parse_listing(capsys.readouterr().out, "")) == acls


def test_a_terminal_without_a_letter_gets_its_escape_which_is_read_back(monkeypatch):
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(buffer, "ascii", write_through=True))
    acls = [allow("User:日\\本", READ, "é")]
    _print_acls(acls)
    put("日本\udcff")
    listing, _, line = buffer.getvalue().decode("ascii").rpartition("\n\n")
    assert line == "\\u65e5\\u672c\\udcff\n"
    assert list(parse_listing(listing, "")) == acls


@pytest.mark.parametrize(
    "words",
    [
        ("who-can", "READ", "group", "g"),
        ("what-can", "User:*"),
        ("explain", "User:x", "READ", "group", "g"),
        ("lint",),
    ],
)
def test_no_name_tears_the_csv_of_an_answer_or_is_a_formula(run, tmp_path, words):
    acls = [allow(name + ":x", READ, "g", resource_type=GROUP) for name in NAMES]
    acls += [allow("User:*", READ, name, resource_type=GROUP) for name in NAMES]
    path = tmp_path / "policy.yaml"
    write_policy(Policy(acls), path)
    text = run(*words, "--acls", str(path), "--output", "csv")[1]
    known = json.loads(run(*words, "--acls", str(path), "--output", "json")[1])
    check_table(text, len(known))


def test_no_name_tears_the_csv_of_the_history_or_is_a_formula(run, tmp_path):
    url = stored(tmp_path / "acls.db", [allow(f"User:{n}", READ, n, host=n) for n in NAMES])
    check_table(run("history", "--store", url, "--output", "csv")[1], len(NAMES))


def check_table(text, count):
    assert is_plain(text.replace("\n", ""))
    assert text.count("\n") == count + 1
    head, *rows = csv.reader(io.StringIO(text))
    assert len(rows) == count > 0
    for row in rows:
        assert len(row) == len(head)
        assert not [cell for cell in row if cell.lstrip().startswith(FORMULA)]


@pytest.mark.parametrize(
    "words",
    [
        ("acls", "--list", "--bootstrap-server", "x:1", "--principal", "a\x1b[2J\nforged"),
        ("acls", "--a\x1b[2J\nforged"),
        ("acls", "--list", "--bootstrap-server", "a\x1b[2J\nforged"),
        ("acls", "--list", "--bootstrap-server", "x:1", "--command-config", "\x1b\nforged"),
        ("what-can", "User:a", "--acls", "\x1b[2J\nforged"),
        ("diff", "\x1b[2J\nforged", "b"),
        ("policy", "apply", "\x1b[2J\nforged", "--bootstrap-server", "x:1"),
        ("migrate", "--from", "file:\x1b\nforged.yaml", "--to", "file:b.yaml"),
        ("store", "check", "\x1b\nforged"),
        ("scram", "list", "--bootstrap-server", "\x1b\nforged"),
        ("tokens", "--describe", "--bootstrap-server", "\x1b\nforged", "--command-config", "/"),
        ("conformance", "compare", "--bootstrap-server", "\x1b\nforged", "--command-config", "/"),
        ("run", "--policy", "\x1b[2J\nforged", "--", "true"),
        ("serve\x1b[2J\nforged",),
        ("who-can", "READ", "topic", "t", "--nothing\x1b[2J\nforged"),
    ],
)
def test_no_argument_commands_the_terminal_that_is_told_of_it(run, capsys, words):
    try:
        status, out, err = run(*words)
    except SystemExit as exit:
        status, (out, err) = exit.code, capsys.readouterr()
    assert status != 0
    assert "\x1b" not in out + err
    assert err + out
    assert not [line for line in (out + err).split("\n") if line.startswith("forged")]


def test_json_has_no_raw_control_character(run, tmp_path):
    path = tmp_path / "policy.yaml"
    write_policy(Policy([allow(name="a\x7fb", resource_type=GROUP)]), path)
    out = run("what-can", "User:alice", "--acls", str(path), "--output", "json")[1]
    assert is_plain(out.replace("\n", ""))
    assert json.loads(out)[0]["name"] == "a\x7fb"


def test_numbers_and_gaps_are_cells_as_they_are():
    assert [csv_cell(each) for each in (None, -1, True, 0.5, "")] == ["", "-1", "True", "0.5", ""]


OWN_WAY = {
    "src/aclbroker/terminal.py",
    "src/aclbroker/cli/migrate/progress.py",
    "src/aclbroker/pipeline/command/progress.py",
    "src/aclbroker/broker/observability/logs.py",
    "src/aclbroker/broker/observability/log_writer.py",
}
"""Modules that may write by themselves: the printing functions, progress bars, and the log."""


def test_everything_that_is_printed_goes_through_the_one_way_out():
    home = Path(aclbroker.__file__).parent
    found = []
    for path in sorted(home.rglob("*.py")):
        name = path.resolve().relative_to(home.resolve().parents[1]).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and name not in OWN_WAY:
                called = ast.unparse(node.func)
                is_stream = called.startswith(("sys.stdout.", "sys.stderr."))
                if called == "print" or (is_stream and "write" in called):
                    found.append(f"{name}:{node.lineno}")
                is_log = "log_of_its_own" in ast.unparse(node)
                if not is_log and any(
                    ast.unparse(each) in ("sys.stdout", "sys.stderr") for each in node.args
                ):
                    found.append(f"{name}:{node.lineno}")
    assert found == []
