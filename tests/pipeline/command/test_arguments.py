"""The arguments of `aclbroker audit`."""

import subprocess
import sys
from datetime import date

import pytest

from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.audit import AuditCommand
from aclbroker.pipeline.command.options import AuditOptions, Given
from aclbroker.pipeline.jobs import JOBS

LEAST = ["--input", "log", "--output", "out"]


def parsed(*arguments: str) -> AuditOptions:
    command = parse_arguments(["audit", *arguments])
    assert isinstance(command, AuditCommand)
    return command.options


def test_a_job_needs_an_input_and_an_output():
    assert parsed("matrix", *LEAST) == AuditOptions(
        "matrix", ("log",), "out", command="aclbroker audit matrix --input log --output out"
    )


def test_all_that_a_run_can_be_told():
    options = parsed(
        "what-if", *LEAST, "--input", "s3a://b/cluster=x/a.gz", "b", "--acls", "x=acls.yaml",
        "--acls", "kafka://h:1", "--proposed", "dir/a=b.yaml", "--other", "x=kafka://h:2",
        "--earlier", "e", "--super-user", "User:CN=a,O=b", "--super-user", "x=User:b",
        "--broker-user", "User:c", "--broker-listener", "internal",
        "--allow-everyone-if-no-acl-found", "--allow-everyone-if-no-acl-found", "y", "--cidr",
        "--properties", "x=server.properties", "--command-config", "c", "--form", "kafka",
        "--cluster=-x", "--zone", "Europe/Berlin", "--days", "2026-01-01..2026-01-31",
        "--master", "spark://h:1", "--spark", "spark.a=b=c", "--spark", "spark.d=",
    )  # fmt: skip
    assert options.inputs == ("log", "s3a://b/cluster=x/a.gz", "b")
    assert options.acls == (Given("x", "acls.yaml"), Given(None, "kafka://h:1"))
    assert options.proposed == (Given(None, "dir/a=b.yaml"),)
    assert options.other == (Given("x", "kafka://h:2"),)
    assert options.earlier == (Given(None, "e"),)
    assert options.super_users == (Given(None, "User:CN=a,O=b"), Given("x", "User:b"))
    assert options.broker_users == (Given(None, "User:c"),)
    assert options.broker_listener == "INTERNAL"
    assert options.open_clusters == (None, "y")
    assert options.cidr
    assert options.properties == (Given("x", "server.properties"),)
    assert (options.form, options.cluster, options.zone) == ("kafka", "-x", "Europe/Berlin")
    assert (options.since, options.until) == (date(2026, 1, 1), date(2026, 1, 31))
    assert options.master == "spark://h:1"
    assert options.spark == {"spark.a": "b=c", "spark.d": ""}
    assert options.command_config == "c"


COLUMNS = "timestamp=ts,principal=user,operation=op,resource_type=t,resource_name=n,allowed=ok"


def test_the_columns_of_a_table_of_others_are_named():
    found = parsed("matrix", *LEAST, "--columns", COLUMNS).columns
    assert found is not None
    assert str(found) == COLUMNS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["matrix", "--columns", "principal=user"], "no column is named for timestamp, operation"),
        (["matrix", "--columns", COLUMNS, "--form", "kafka"], "not beside --form or --pattern"),
        (["ingest", "--columns", COLUMNS], "the other jobs read such tables, ingest gathers logs"),
    ],
)
def test_columns_that_cannot_be_are_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as end:
        parsed(*words, *LEAST)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_numbers_to_fail_on_are_read_from_one_option_or_several():
    options = parsed("what-if", *LEAST, "--proposed", "p", "--fail-on", "newly-denied,drift=100",
                     "--fail-on", "newly-allowed=3")  # fmt: skip
    assert options.fail_on == (("newly-denied", 0), ("drift", 100), ("newly-allowed", 3))


def test_settings_to_try():
    options = parsed(
        "what-if", *LEAST, "--acls", "a", "--proposed-properties", "x=p", "--proposed-super-user",
        "y=User:a", "--proposed-broker-user", "none", "--proposed-broker-listener", "internal",
        "--proposed-allow-everyone-if-no-acl-found", "false", "--proposed-cidr", "x=true",
    )  # fmt: skip
    assert options.proposed == options.acls == (Given(None, "a"),)
    assert options.proposed_properties == (Given("x", "p"),)
    assert options.proposed_super_users == (Given("y", "User:a"),)
    assert options.proposed_broker_users == (Given(None, "none"),)
    assert options.proposed_broker_listener == "INTERNAL"
    assert options.proposed_allow_everyone == ((None, False),)
    assert options.proposed_cidr == (("x", True),)
    assert parsed("all", *LEAST, "--acls", "a", "--proposed-cidr", "true", "--fail-on",
                  "newly-denied").proposed  # fmt: skip


def test_every_job_can_be_asked_for():
    for name, job in JOBS.items():
        needed = [part for each in job.needs for part in (f"--{each}", "file")]
        assert parsed(name, *LEAST, *needed).job == name
    assert parsed("all", *LEAST).job == "all"


def test_the_job_anomalies_can_be_called_by_its_former_name():
    options = parsed("sessions", *LEAST, "--baseline-days", "3")
    assert options.job == "anomalies"
    assert options.job_options == {"anomalies": {"baseline_days": 3}}


def test_options_of_jobs_are_fields_of_what_the_job_is_given():
    options = parsed("all", *LEAST, "--top", "5", "--baseline-days", "3", "--spike-factor", "2.5",
                     "--no-filtering")  # fmt: skip
    assert options.job_options == {
        "matrix": {"top": 5},
        "redundant": {"top": 5},
        "what-if": {"top": 5},
        "diff": {"top": 5},
        "anomalies": {"top": 5, "baseline_days": 3, "spike.factor": 2.5},
        "point-in-time": {"top": 5},
        "unused": {"filtering": False, "top": 5},
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit"], "the following arguments are required: JOB"),
        (["audit", "usage"], "choose from"),
        (["audit", "matrix", "--output", "o"], "required: --input"),
        (["audit", "matrix", "--input", "i"], "required: --output"),
        (["audit", "diff", *LEAST], "diff needs --acls and --other"),
        (["audit", "what-if", *LEAST, "--acls", "a"], "needs --proposed, or a proposed setting"),
        (["audit", "what-if", *LEAST, "--proposed-cidr", "true"], "proposed settings need --acls"),
        (["audit", "what-if", *LEAST, "--proposed-cidr", "on"], "expected true, false, CLUSTER="),
        (["audit", "what-if", *LEAST, "--proposed-super-user", "a"], "Type:name"),
        (
            ["audit", "what-if", *LEAST, "--acls", "a", "--proposed-broker-listener", "L",
             "--proposed-cidr", "true"],
            "--proposed-broker-listener is for --proposed-broker-user",
        ),
        (["audit", "matrix", *LEAST, "--fail-on", "unused"], "the job unused looks for it"),
        (["audit", "all", *LEAST, "--fail-on", "newly-denied"], "the jobs what-if and diff look"),
        (["audit", "matrix", *LEAST, "--fail-on", "denied"], "'denied' is none of newly-denied"),
        (["audit", "what-if", *LEAST, "--baseline-days", "2"], "unrecognized arguments"),
        (["audit", "anomalies", *LEAST, "--baseline-days", "0"], "no whole number above 0"),
        (["audit", "anomalies", *LEAST, "--spike-factor", "nan"], "'nan' is no number above 0"),
        (["audit", "unused", *LEAST, "--max-drift", "101"], "'101' is no number from 0 to 100"),
        (["audit", "unused", *LEAST, "--max-drift", "nan"], "'nan' is no number from 0 to 100"),
        (["audit", "matrix", *LEAST, "--acls", "x="], "expected FILE or CLUSTER=FILE"),
        (["audit", "matrix", *LEAST, "--super-user", "alice"], "Type:name"),
        (["audit", "matrix", *LEAST, "--broker-user", "User:a"], "--broker-listener NAME"),
        (["audit", "matrix", *LEAST, "--days", "2026-01-01"], "FROM..TO"),
        (["audit", "matrix", *LEAST, "--since", "yesterday"], "'yesterday' is no day"),
        (["audit", "matrix", *LEAST, "--days", "2026-01-02..2026-01-01"], "after the last"),
        (
            ["audit", "matrix", *LEAST, "--days", "2026-01-01..2026-01-02", "--since",
             "2026-01-01"],
            "not beside --since",
        ),
        (["audit", "matrix", *LEAST, "--zone", "Mars"], "'Mars' is no time zone"),
        (["audit", "matrix", *LEAST, "--zone", "/etc/passwd"], "no time zone"),
        (["audit", "matrix", *LEAST, "--spark", "secret=1"], "expected spark.NAME=VALUE"),
        (["audit", "matrix", *LEAST, "--clust", "x"], "unrecognized arguments"),
        (
            ["audit", "matrix", *LEAST, "--cluster", "-ZKlRKSqQNOMCvA9Y7D2uw"],
            "--cluster: expected one argument (one that begins with a hyphen is given as "
            "--cluster=-...)\n",
        ),
        (["audit", "matrix", "--output", "o", "--input", "-a"], "given as --input=-...)\n"),
    ],
)  # fmt: skip
def test_wrong_arguments_end_with_status_2_and_what_is_allowed(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    with pytest.raises(SystemExit) as end:
        parse_arguments(arguments)
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert said in message
    assert "secret" not in message


def test_no_other_command_imports_the_pipeline_or_spark():
    program = (
        "import sys; from aclbroker.cli.arguments import parse_arguments\n"
        "parse_arguments(['serve'])\n"
        "assert not [m for m in sys.modules if m.startswith(('aclbroker.pipeline', 'pyspark'))]\n"
        "parse_arguments(['audit', 'matrix', '--input', 'i', '--output', 'o'])\n"
        "import aclbroker.pipeline.command.run\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('pyspark', 'pyarrow')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
