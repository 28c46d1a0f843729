"""The tests of franz-go's kgo, as its module is published, with no more rights than they need.

Among them are chains of groups whose members come and go, with and without transactions
(TestGroupETL and TestTxnEtl). All run at the same time, once.

TestShareGroupETL is not among them. In one of many runs it waited four minutes for released records
of one partition. The client may not have fetched them, or the broker may not have delivered them.
The cause did not show in 70 more runs, some with the client or the broker stopped for seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from aclbroker.protocol.messages.create_acls import AclCreation
from tests.memory_cluster import raw
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.certificates import Authority, pem
from tests.support.packages import go_test_binary
from tests.support.tls import pem_stores

KGO: Final = "github.com/twmb/franz-go/pkg/kgo"
TESTS: Final = (
    "Test848RegexBrokerResolves",
    "TestAddRemovePartitions",
    "TestClient_Produce",
    "TestClient_ProduceLargeMessages",
    "TestConsumeMaxDecompressBatchBytes",
    "TestConsumeRegex",
    "TestConsumeTopicRetrieval",
    "TestConsumeTopicRetrieval_Many",
    "TestDirectPartitionPurge",
    "TestGroupETL",
    "TestGroupSimple",
    "TestHookPollStart",
    "TestIssue1034",
    "TestIssue325",
    "TestIssue337",
    "TestIssue434",
    "TestIssue523",
    "TestIssue648",
    "TestIssue810",
    "TestIssue831",
    "TestIssue865",
    "TestIssueFetchLargerThanBrokerMaxReadBytes",
    "TestIssueProduceSyncManualPartitionNegativeDoesNotPanic",
    "TestPauseIssue489",
    "TestPauseIssueOct2023",
    "TestPing",
    "TestPooling",
    "TestSCRAMAuth",
    "TestSCRAMAuthBadCredentials",
    "TestShareGroupAckOnClose",
    "TestShareGroupOffsetsAdmin",
    "TestTxnEtl",
    "TestUnknownGroupOffsetFetchPinned",
)
"""Tests of kgo that need a cluster and pass with the one in memory."""

LONG: Final = ("TestGroupETL", "TestIssue337", "TestIssue434", "TestShareGroupAckOnClose")
"""Those of them that take ten seconds or more, which the daily run leaves out."""

AT_ONCE: Final = 8
"""How many tests kgo runs at the same time: they mostly wait."""

WITH_CHAOS: Final = ("TestGroupETL", "TestIssue769")
"""The tests that open their connections themselves, which kgo does not do together with TLS.

Those of TestGroupETL break after a second (KGO_TEST_CHAOS), and all is tried again on new ones.
"""

WITHIN: Final = 360
"""How many seconds either run may take: both take 75 alone, and minutes on a busy machine."""

pytestmark = pytest.mark.timeout(2 * WITHIN + 120)

_TYPES: Final = {"TOPIC": 2, "GROUP": 3, "TRANSACTIONAL_ID": 5}
_OPERATIONS: Final = {
    "READ": raw.READ,
    "WRITE": raw.WRITE,
    "CREATE": raw.CREATE,
    "DELETE": raw.DELETE,
    "ALTER_CONFIGS": raw.ALTER_CONFIGS,
}
RIGHTS: Final = frozenset(
    {
        ("TOPIC", "CREATE"),
        ("TOPIC", "DELETE"),
        ("TOPIC", "READ"),
        ("TOPIC", "WRITE"),
        ("GROUP", "ALTER_CONFIGS"),
        ("GROUP", "DELETE"),
        ("GROUP", "READ"),
        ("TRANSACTIONAL_ID", "WRITE"),
    }
)
"""What kgo's tests may do, with all names, since those that they choose are random."""

_TLS_USER: Final = "User:CN=kgo"
ANONYMOUS: Final = "User:ANONYMOUS"
_RESULT: Final = re.compile(r"^--- (\w+): (\w+)", re.MULTILINE)


class Run(NamedTuple):
    """Which tests of kgo ran, what they printed, and what the broker's audit log says."""

    tests: list[str]
    by_tls: str
    with_chaos: str
    audit: list[dict[str, Any]]


def _settings(directory: Path, authority: Authority) -> dict[str, str]:
    listeners = [f"{each}://127.0.0.1:0" for each in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")]
    return {
        "listeners": ",".join(listeners),
        "super.users": "User:admin",
        "ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "aclbroker.cluster": "memory",
        "aclbroker.nodes": "3",
        # Two of the tests want an internal topic to be there.
        "aclbroker.catalog.topics": "__consumer_offsets:50",
        "aclbroker.audit.level": "all",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.share.heartbeat.interval.ms": "500",
        **pem_stores(directory, authority.issue("CN=broker"), authority),
    }


def acls_of(*users: str) -> list[AclCreation]:
    """Return the ACLs that allow users all that kgo's tests need."""
    return [
        AclCreation(_TYPES[kind], "*", 3, user, "*", _OPERATIONS[operation], 3)
        for user in users
        for kind, operation in RIGHTS
    ]


def _let_in(broker: Broker) -> None:
    """Allow kgo's users all that their tests need, and create the SCRAM login of alice."""
    allowed = acls_of(_TLS_USER, ANONYMOUS)
    assert not any(raw.logged_in(broker, "admin").create(*allowed))
    admin = AdminClient(
        {
            "bootstrap.servers": broker.listeners["SASL_PLAINTEXT"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": PASSWORDS["admin"],
        }
    )
    iterations = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    alice = UserScramCredentialUpsertion("alice", iterations, PASSWORDS["alice"].encode())
    for result in admin.alter_user_scram_credentials([alice]).values():
        result.result(20)


def _environment(broker: Broker, directory: Path, authority: Authority) -> dict[str, str]:
    """Return how kgo's tests find the broker, and log in by TLS or by SCRAM."""
    identity = authority.issue("CN=kgo")
    files = {
        "ca": pem(authority.certificate),
        "cert": identity.chain_pem(),
        "key": identity.key_pem(),
    }
    for name, text in files.items():
        (directory / f"{name}.pem").write_text(text)
    return {
        "KGO_SEEDS": broker.listeners["SSL"],
        "KGO_TEST_TLS": ",".join(f"{name}:{directory}/{name}.pem" for name in files),
        "KGO_TEST_SCRAM_SEEDS": broker.listeners["SASL_PLAINTEXT"],
        "KGO_TEST_SCRAM": f"alice:{PASSWORDS['alice']}:256",
    }


def output_of_tests(
    directory: Path, environment: dict[str, str], tests: Sequence[str], records: int
) -> str:
    """Run tests of kgo at the same time; return all that they print.

    So many records go through each chain of groups, where kgo's own default is 500,000.
    """
    settings = {"KGO_TEST_RECORDS": str(records), "KGO_LOG_LEVEL": "none"}
    command = [
        str(go_test_binary(KGO)),
        "-test.v",
        f"-test.timeout={WITHIN}s",
        f"-test.parallel={AT_ONCE}",
    ]
    done = subprocess.run(
        [*command, f"-test.run=^({'|'.join(tests)})$"],
        cwd=directory,
        env={**os.environ, **environment, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WITHIN + 30,
        check=False,
    )
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, every_case: bool) -> Run:
    """All of the tests, with a cluster of three nodes, which has ended then.

    The daily run has no chaos, no long tests and fewer records.
    """
    directory, authority = tmp_path_factory.mktemp("kgo"), Authority()
    broker = Broker(directory, _settings(directory, authority))
    broker.start()
    try:
        _let_in(broker)
        by_tls = _environment(broker, directory, authority)
        with_chaos = {"KGO_SEEDS": broker.listeners["PLAINTEXT"], "KGO_TEST_CHAOS": "1"}
        records = 20_000 if every_case else 2_000
        tests = [test for test in TESTS if every_case or test not in LONG]
        printed = (
            output_of_tests(directory, by_tls, tests, records),
            output_of_tests(directory, with_chaos, WITH_CHAOS, records) if every_case else "",
        )
    finally:
        broker.terminate()
    told = [each for each in broker.events() if each["event"] == "authorization"]
    return Run(tests, *printed, [each for each in told if each["principal"] != "User:admin"])


def passes(test: str, output: str) -> bool:
    """Return whether a test of kgo passes by its output."""
    results = {name: result for result, name in _RESULT.findall(output)}
    return results.get(test) == "PASS"


def test_each_test_of_kgo_passes(run: Run):
    assert [test for test in run.tests if not passes(test, run.by_tls)] == [], run.by_tls


@pytest.mark.thorough
def test_each_test_of_kgo_passes_while_its_connections_break(run: Run):
    assert [test for test in WITH_CHAOS if not passes(test, run.with_chaos)] == [], run.with_chaos


def test_kgo_was_denied_nothing_and_used_all_of_its_rights(run: Run):
    assert [each for each in run.audit if not each["allowed"]] == []
    of_tls = [each for each in run.audit if each["principal"] == _TLS_USER]
    used = {(each["resource_type"], each["operation"]) for each in of_tls}
    assert used >= RIGHTS
