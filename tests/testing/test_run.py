"""`aclbroker run`: a command of any language beside a broker of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.broker import COMMAND
from tests.support.packages import java_command, kafka_jars
from tests.support.process import wait_for

APPLICATION = """
import os, sys
from confluent_kafka.admin import AdminClient

client = AdminClient({
    "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"],
    "security.protocol": os.environ["KAFKA_SECURITY_PROTOCOL"],
    "sasl.mechanisms": os.environ["KAFKA_SASL_MECHANISM"],
    "sasl.username": os.environ["KAFKA_SASL_USERNAME"],
    "sasl.password": os.environ["KAFKA_SASL_PASSWORD"],
    "log_level": 0,
})
error = client.list_topics("orders", timeout=10).topics["orders"].error
print(error.name() if error else "seen")
"""

POLICY = """\
version: 1
acls:
- principal: User:shop
  rules:
  - topic: orders
    allow: [DESCRIBE]
"""


@pytest.fixture
def application(tmp_path: Path) -> list[str]:
    path = tmp_path / "application.py"
    path.write_text(APPLICATION)
    return [sys.executable, str(path)]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(forked.ACLBROKER, ["run", *arguments], cwd)


def test_what_is_denied_is_told_with_the_acl_that_allows_it(application, tmp_path):
    done = run("--user", "shop", "--topic", "orders:3", "--", *application, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "TOPIC_AUTHORIZATION_FAILED\n")
    denied = (
        "User:shop from 127.0.0.1: Metadata needs DESCRIBE on TOPIC orders; "
        "to allow it: add ALLOW WRITE on TOPIC LITERAL orders to User:shop from * to produce, "
        "or READ to consume; each also gives DESCRIBE, which alone is enough to look at the topic"
    )
    assert done.stderr.splitlines() == [
        f"aclbroker run: denied just now: {denied}",
        f"aclbroker run: denied: {denied}",
    ]


def test_a_denial_is_shown_while_the_command_runs(application, tmp_path):
    # The application ends only after this test has written to the pipe "seen".
    os.mkfifo(tmp_path / "seen")
    words = "sh", "-c", '"$@"; read line < seen; echo "$line"', "sh", *application
    command = [str(COMMAND), "run", "--user", "shop", "--topic", "orders", "--", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        (tmp_path / "seen").write_text("ended\n")
        output, _ = running.communicate(timeout=60)
    assert first.startswith("aclbroker run: denied just now: User:shop from 127.0.0.1: Metadata")
    assert output.splitlines()[-1] == "ended"


NO_LOGIN = [
    ("pass", "no client logged in (none tried to)"),
    (
        "os.environ['KAFKA_SASL_PASSWORD'] = 'wrong'",
        "no client logged in (1 failed: SASL authentication failed",
    ),
]


@pytest.mark.parametrize(("first", "why"), NO_LOGIN, ids=["none", "wrong password"])
def test_a_recording_in_which_no_client_logs_in_fails_and_leaves_the_file(first, why, tmp_path):
    script = tmp_path / "application.py"
    logs_in = APPLICATION.replace("client =", "import contextlib\nclient =").replace(
        "error = client", "with contextlib.suppress(Exception): error = client"
    )
    rest = logs_in.partition("print(")[0] if "wrong" in first else ""
    script.write_text(f"import os\n{first}\n{rest.replace('timeout=10', 'timeout=2')}")
    (tmp_path / "policy.yaml").write_text(POLICY)
    for option in ("--record", "--policy"):
        words = [sys.executable, str(script)]
        done = run("--topic", "orders", option, "policy.yaml", "--", *words, cwd=tmp_path)
        assert done.returncode == 1
        assert why.partition("(")[0] in done.stderr
        assert (tmp_path / "policy.yaml").read_text() == POLICY


def test_after_a_command_that_failed_nothing_is_called_never_used(application, tmp_path):
    (tmp_path / "policy.yaml").write_text(f"{POLICY}  - topic: refunds\n    allow: [WRITE]\n")
    words = "sh", "-c", '"$@"; exit 7', "sh", *application
    common = "--user", "shop", "--topic", "orders", "--policy", "policy.yaml"
    done = run(*common, "--", *words, cwd=tmp_path)
    assert done.returncode == 7
    assert done.stderr == (
        "aclbroker run: the command failed, so that more may be used of policy.yaml\n"
    )


@pytest.mark.parametrize(
    "setting", ["listeners=PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=SCRAM-SHA-512"]
)
def test_a_setting_by_which_the_command_could_not_log_in_is_refused(setting, tmp_path):
    done = run("--override", setting, "--", "true", cwd=tmp_path)
    assert done.returncode == 1
    name = setting.partition("=")[0]
    assert done.stderr.startswith(f"aclbroker run: {name} cannot be set here")
    assert done.stderr.count("\n") == 1


def test_a_recorded_policy_is_enough_for_the_same_command(application, tmp_path):
    common = "--user", "shop", "--topic", "orders"
    done = run(*common, "--record", "policy.yaml", "--", *application, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "seen\n")
    assert (tmp_path / "policy.yaml").read_text() == POLICY
    done = run(*common, "--policy", "policy.yaml", "--", *application, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "seen\n", "")


def test_what_of_a_policy_is_never_used_is_listed_and_does_no_harm(application, tmp_path):
    (tmp_path / "policy.yaml").write_text(f"{POLICY}  - topic: refunds\n    allow: [WRITE]\n")
    common = "--user", "shop", "--topic", "orders", "--policy", "policy.yaml"
    done = run(*common, "--", *application, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "seen\n")
    assert done.stderr == (
        "aclbroker run: never used in policy.yaml: "
        "ALLOW WRITE on TOPIC LITERAL refunds to User:shop from *\n"
    )


@pytest.mark.thorough
def test_a_command_that_does_nothing_and_fails_leaves_the_file_that_there_was(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    for words, status in ((["no-such-command"], 127), ([sys.executable, "-c", "exit(7)"], 7)):
        done = run("--record", "policy.yaml", "--", *words, cwd=tmp_path)
        assert done.returncode == status
        assert "not recorded: the command failed, and policy.yaml is as it was" in done.stderr
        assert (tmp_path / "policy.yaml").read_text() == POLICY


def test_a_command_that_fails_is_recorded_as_far_as_it_came(application, tmp_path):
    words = "sh", "-c", '"$@"; exit 7', "sh", *application
    common = "--user", "shop", "--topic", "orders"
    done = run(*common, "--record", "policy.yaml", "--", *words, cwd=tmp_path)
    assert done.returncode == 7
    assert "recorded 1 ACLs: policy.yaml, which may lack what the command would" in done.stderr
    assert (tmp_path / "policy.yaml").read_text() == POLICY


@pytest.mark.thorough
def test_a_record_that_cannot_be_written_is_told(application, tmp_path):
    common = "--topic", "orders", "--record"
    done = run(*common, "missing/policy.yaml", "--", *application, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no directory for missing/policy.yaml" in done.stderr
    done = run(*common, ".", "--", *application, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "seen\n")
    assert done.stderr == "aclbroker run: not recorded: .: Is a directory\n"


def test_the_exit_status_is_that_of_the_command(tmp_path):
    for status in (0, 7):
        words = sys.executable, "-c", f"raise SystemExit({status})"
        assert run("--", *words, cwd=tmp_path).returncode == status
    killed = sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"
    assert run("--", *killed, cwd=tmp_path).returncode == 128 + signal.SIGKILL
    missing = run("--", "no-such-command", cwd=tmp_path)
    assert missing.returncode == 127
    assert missing.stderr == "aclbroker run: no-such-command: No such file or directory\n"


def test_each_user_has_a_file_of_settings_that_nobody_else_can_read(tmp_path):
    script = (
        "import os, pathlib\n"
        "print(os.environ['BROKERS'].count(','))\n"
        "for each in sorted(pathlib.Path(os.environ['KAFKA_CLIENT_PROPERTIES_DIR']).iterdir()):\n"
        "    text = each.read_text()\n"
        "    print(each.name, oct(each.stat().st_mode & 0o777), 'sasl.jaas.config' in text)\n"
        "print(os.path.basename(os.environ['KAFKA_CLIENT_PROPERTIES']))\n"
    )
    options = "--user", "shop", "--user", "till", "--env", "BROKERS", "--nodes", "3"
    done = run(*options, "--", sys.executable, "-c", script, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "2",
        "shop.properties 0o600 True",
        "till.properties 0o600 True",
        "shop.properties",
    ]


def test_the_command_is_told_where_to_ask_for_faults(tmp_path):
    script = (
        "import os, urllib.request as r\n"
        "url = os.environ['ACLBROKER_FAULTS_URL'] + '?request=Produce&error=NOT_CONTROLLER'\n"
        "print(r.urlopen(r.Request(url, method='POST')).status)\n"
    )
    setting = "--override", "aclbroker.faults.address=127.0.0.1:0"
    done = run(*setting, "--", sys.executable, "-c", script, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "201\n"), done.stderr
    without = run("--", sys.executable, "-c", script, cwd=tmp_path)
    assert "KeyError: 'ACLBROKER_FAULTS_URL'" in without.stderr


@pytest.mark.parametrize(("arguments", "told"), [
    (["--policy", "missing.yaml"], "No such file"),
    (["--topic", "a/b"], "'a/b'"),
    (["--override", "aclbroker.nodes=0"], "aclbroker.nodes"),
    pytest.param(["--nodes", "0"], "aclbroker.nodes", marks=pytest.mark.thorough),
])  # fmt: skip
def test_what_cannot_be_is_told_before_the_command_runs(arguments, told, tmp_path):
    done = run(*arguments, "--", sys.executable, "-c", "print('ran')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("option", "value"), [
    ("--user", ""),
    ("--user", "../shop"),
    ("--user", "a/b"),
    ("--user", "a\nb"),
    ("--user", "a" * 201),
    ("--env", ""),
    ("--env", "A=B"),
])  # fmt: skip
def test_an_argument_that_cannot_be_is_refused(option, value, tmp_path):
    done = run(option, value, "--", sys.executable, "-c", "print('ran')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"argument {option}: {value!r} is no " in done.stderr
    assert "Traceback" not in done.stderr


def test_java_logs_in_with_any_name_that_a_user_may_have(tmp_path):
    user = 'o"br\\ien ü'
    java = java_command("org.apache.kafka.tools.TopicCommand", kafka_jars(), minimum=17)
    script = (
        '"$@" --list --bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS"'
        ' --command-config "$KAFKA_CLIENT_PROPERTIES"'
    )
    (tmp_path / "policy.yaml").write_text(
        f"version: 1\nacls:\n- principal: 'User:{user}'\n  rules:\n"
        "  - topic: orders\n    allow: DESCRIBE\n"
    )
    options = "--user", user, "--topic", "orders", "--policy", "policy.yaml"
    done = run(*options, "--", "sh", "-c", script, "sh", *java, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "orders\n"), done.stderr


def started(cwd: Path, *arguments: str) -> tuple[subprocess.Popen[str], int, Path]:
    """Start a command that waits; return the process, that of the command, and its directory."""
    told = cwd / "told"
    script = (
        "import os, pathlib, time\n"
        "path = pathlib.Path('told.part')\n"
        "path.write_text(f\"{os.getpid()} {os.environ['KAFKA_CLIENT_PROPERTIES_DIR']}\")\n"
        "path.rename('told')\n"
        "time.sleep(60)\n"
    )
    (cwd / "waiting.py").write_text(script)
    process = subprocess.Popen(
        [str(COMMAND), "run", *arguments, sys.executable, "waiting.py"],
        cwd=cwd,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for("the command", lambda: told.exists() or None, 30)
    except BaseException:
        process.kill()
        raise
    number, directory = told.read_text().split(maxsplit=1)
    return process, int(number), Path(directory)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.thorough)]
)
def test_a_signal_ends_the_command_and_leaves_nothing(number, tmp_path):
    process, command, directory = started(tmp_path, "--")
    assert directory.exists()
    try:
        os.kill(process.pid, number)
        assert process.wait(30) == 128 + number
        assert not directory.exists()
        with pytest.raises(ProcessLookupError):
            os.kill(command, 0)
    finally:
        process.kill()
        process.communicate()


def test_what_was_done_before_a_signal_is_recorded(application, tmp_path):
    before = "--user", "shop", "--topic", "orders", "--record", "policy.yaml", "--"
    first = "sh", "-c", '"$0" "$1" && shift && exec "$@"'
    process, _, _ = started(tmp_path, *before, *first, *application)
    try:
        process.send_signal(signal.SIGHUP)
        told = process.communicate(timeout=30)[1]
    finally:
        process.kill()
        process.wait()
    assert "recorded 1 ACLs: policy.yaml, which may lack what the command would" in told
    assert (tmp_path / "policy.yaml").read_text() == POLICY


@pytest.mark.parametrize(("script", "status"), [
    # It comes while the command has hardly begun.
    ("kill -TERM $PPID; exec sleep 60", 128 + signal.SIGTERM),
    pytest.param("kill -HUP $PPID; exec sleep 60", 128 + signal.SIGHUP, marks=pytest.mark.thorough),
    # A terminal sends these to the command as well, which may go on.
    ("kill -INT $PPID; kill -QUIT $PPID; exit 5", 5),
    ("kill -INT $$; exit 5", 128 + signal.SIGINT),
])  # fmt: skip
def test_the_command_decides_what_a_signal_means(script, status, tmp_path):
    assert run("--", "sh", "-c", script, cwd=tmp_path).returncode == status


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    script = f"kill -HUP $PPID; {sys.executable} -c 'import os; os.kill(os.getpid(), 1)'; exit 5"
    words = str(COMMAND), "run", "--", "sh", "-c", script
    ignoring = "sh", "-c", 'trap "" HUP; exec "$@"', "sh"
    done = subprocess.run([*ignoring, *words], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 5
