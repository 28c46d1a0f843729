"""`aclbroker prove`: statements in a file, checked, for people and for CI."""

import json
from xml.etree import ElementTree

import pytest

from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.cli.test_questions import ACLS

HEAD = "version: 1\ninvariants:\n"
TRUE = "nobody but User:payments may WRITE topics pii-*"
FALSE = "User:payments may WRITE every topic pii-*"


@pytest.fixture
def prove(capsys, tmp_path):
    """Check a file of statements; return the status, standard output and standard error."""
    policy, file = tmp_path / "policy.yaml", tmp_path / "invariants.yaml"
    write_policy(Policy(ACLS), policy)
    settings = tmp_path / "server.properties"
    settings.write_text("# without super users\n")
    words = ["prove", "-f", str(file), "--acls", str(policy), "--broker-properties", str(settings)]

    def prove(text, *options):
        file.write_text(text)
        command = parse_arguments([*words, *options])
        assert isinstance(command, QuestionCommand)
        return command.run(), *capsys.readouterr()

    return prove


def test_statements_that_hold_end_with_status_0(prove):
    assert prove(f"{HEAD}- {TRUE}\n") == (0, f"holds: {TRUE}\n1 hold, 0 do not\n", "")


def test_a_statement_that_does_not_hold_has_a_counterexample(prove):
    status, out, _ = prove(f"{HEAD}- {TRUE}\n- {FALSE}\n- no ALLOW for User:admin on the cluster\n")
    assert status == 1
    assert out.splitlines() == [
        f"holds: {TRUE}",
        f"FAILS: {FALSE}",
        "    User:payments from 192.0.2.1: WRITE on TOPIC pii-raw: denied",
        "FAILS: no ALLOW for User:admin on the cluster",
        "    there is: ALLOW ALTER on CLUSTER LITERAL kafka-cluster to User:admin from *",
        "1 hold, 2 do not",
    ]


def test_a_statement_that_cannot_be_answered_is_told_with_its_place(prove, tmp_path):
    text = f'{HEAD}- {TRUE}\n- nobody may READ topic "a b"\n- nobody may READ topic a from here\n'
    status, out, err = prove(text)
    file = tmp_path / "invariants.yaml"
    assert (status, out) == (2, "")
    assert err.startswith(f"aclbroker: {file}: line 4, column 3: no topic can be called 'a b'")
    _, _, err = prove(f"{HEAD}- nobody may READ topic a from here\n")
    assert f"{file}: line 3, column 3: 'here' is no address" in err


def test_ci_reads_the_outcome_as_junit_and_sarif(prove, tmp_path):
    junit, sarif = tmp_path / "junit.xml", tmp_path / "out.sarif"
    prove(f"{HEAD}- {TRUE}\n- {FALSE}\n", "--junit", str(junit), "--sarif", str(sarif))
    suite = ElementTree.fromstring(junit.read_text())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [first, second] = suite.findall("testcase")
    assert (first.get("name"), first.find("failure")) == (TRUE, None)
    failure = second.find("failure")
    assert failure is not None
    assert "pii-raw: denied" in str(failure.get("message"))
    report = json.loads(sarif.read_text())
    assert report["version"] == "2.1.0"
    [result] = report["runs"][0]["results"]
    [location] = result["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 4, "startColumn": 3}
    assert FALSE in result["message"]["text"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{HEAD}- User:a may REED topic a\n", "line 3, column 14: 'REED' is no operation"),
        (f"{HEAD}- 'User:a may REED topic a'\n", "line 3, column 15: 'REED' is no operation"),
        (f"{HEAD}- User:a may\n   REED topic a\n", "line 3, column 3: 'REED' is no operation"),
        ("version: 2\ninvariants: [x]\n", "line 1, column 10: version 2 is not known, only 1"),
        ("invariants:\n- nobody may READ topic a\n", "the file of invariants has no 'version'"),
        ("version: 1\n", "the file of invariants has no 'invariants'"),
        ("version: 1\ninvariant: []\n", "has no key 'invariant', only version, invariants"),
        ("", "the file is empty"),
        ("version: 1\n  a: b\n", "line 2"),
        (f"{HEAD}- User:a may READ topic a from laptop\n", "'laptop' is no address"),
    ],
)
def test_a_file_with_a_mistake_says_where(prove, text, problem):
    status, out, error = prove(text)
    assert (status, out) == (2, "")
    assert problem in error


def test_a_file_that_is_missing_is_named(prove, tmp_path):
    status, _, error = prove(HEAD + f"- {TRUE}\n", "-f", str(tmp_path / "none.yaml"))
    assert status == 2
    assert "none.yaml: No such file" in error
