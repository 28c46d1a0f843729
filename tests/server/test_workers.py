"""Several processes serve one broker: a change holds in all, and a process that dies loses none."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.broker.credentials.scram_users import upsertion_of
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from tests.clients.acl_command import run_script
from tests.conftest import StartBroker
from tests.http_api.api import MDS, Api, held
from tests.http_api.test_logins import token_key
from tests.server.teams import (
    DENIED,
    ENDS_WITHIN,
    TEAM,
    all_ended,
    all_processes,
    children,
    cluster_describe,
    delete_of,
    described,
    kill_worker,
    logged_in,
    workers,
)
from tests.server.test_status import figure, page
from tests.support.accounts import PASSWORDS, properties_text
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client, topic_read
from tests.support.process import wait_for
from tests.support.tables import thorough

pytestmark = pytest.mark.broker_process


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with two workers, whose ACLs a test leaves as it found them."""
    started = Broker(tmp_path_factory.mktemp("team"), TEAM)
    started.start()
    yield started
    assert started.terminate() == 0


def test_a_grant_and_a_revoke_hold_in_all_workers_when_they_are_answered(team: Broker) -> None:
    with ExitStack() as opened:
        admin = opened.enter_context(logged_in(team, "admin"))
        clients = [opened.enter_context(logged_in(team, "alice")) for _ in range(8)]
        for _ in range(30):
            assert admin.create(cluster_describe()) == [0]
            assert [described(each) for each in clients] == [0] * 8
            assert delete_of(admin, "User:alice").filter_results[0].error_code == 0
            assert [described(each) for each in clients] == [DENIED] * 8


def test_connections_are_shared_out_evenly(team: Broker) -> None:
    def served() -> list[float]:
        return [len(os.listdir(f"/proc/{pid}/fd")) for pid in workers(team)]

    _wait_until_idle(team)
    before = served()
    with ExitStack() as opened:
        for _ in range(10):
            opened.enter_context(logged_in(team, "alice"))
        assert [now - then for now, then in zip(served(), before, strict=True)] == [5, 5]


def _wait_until_idle(team: Broker) -> None:
    """Wait until all workers serve, and no connection of an earlier test counts.

    Connections that are opened then are shared out evenly.
    """
    wait_for("ready", lambda: page(team, "/readyz")[0] == 200 or None, ENDS_WITHIN)
    # The figures are there from the first connection on.
    for listener, address in team.listeners.items():
        Client(address).close()
        wait_for("all to leave", partial(_has_no_connection, team, listener), ENDS_WITHIN)


def _has_no_connection(team: Broker, listener: str) -> bool | None:
    return figure(team, "aclbroker_connections", listener=listener) == 0 or None


def test_kafka_acls_sees_what_it_has_created_and_removed(team: Broker) -> None:
    server = ("--bootstrap-server", team.listeners["PLAINTEXT"])
    rule = ("--allow-principal", "User:zoe", "--operation", "Read", "--topic", "shop")
    assert run_script(*server, "--add", *rule).status == 0
    assert "User:zoe" in run_script(*server, "--list").out
    assert run_script(*server, "--remove", "--force", *rule).status == 0
    assert "User:zoe" not in run_script(*server, "--list").out


def test_figures_are_sums_that_never_go_back(team: Broker) -> None:
    def logins() -> float:
        labels = {"listener": "SASL_PLAINTEXT", "mechanism": "PLAIN", "outcome": "succeeded"}
        return figure(team, "aclbroker_authentications_total", **labels)

    logged_in(team, "alice").close()
    before = logins()
    with ExitStack() as opened:
        for _ in range(6):
            opened.enter_context(logged_in(team, "alice"))
        assert figure(team, "aclbroker_connections", listener="SASL_PLAINTEXT") == 6
        assert logins() == before + 6
        cpu = figure(team, "process_cpu_seconds_total")
        kill_worker(team)
        wait_for("ready", lambda: page(team, "/readyz")[0] == 200 or None, ENDS_WITHIN)
        assert logins() == before + 6
        assert figure(team, "process_cpu_seconds_total") >= cpu
        assert figure(team, "aclbroker_connections", listener="SASL_PLAINTEXT") == 3
    assert figure(team, "process_start_time_seconds") < 1e10


def test_it_is_not_ready_while_a_worker_is_missing(team: Broker) -> None:
    pid = workers(team)[1]
    os.kill(pid, signal.SIGKILL)
    wait_for("not ready", lambda: page(team, "/readyz")[0] == 503 or None, ENDS_WITHIN)
    wait_for("ready", lambda: page(team, "/readyz")[0] == 200 or None, ENDS_WITHIN)


def test_a_worker_that_is_killed_takes_no_answered_change_and_no_other_connection_along(
    team: Broker,
) -> None:
    _wait_until_idle(team)
    made: list[str] = []
    is_over = threading.Event()

    def create(writer: int) -> None:
        number = 0
        while not is_over.is_set():
            try:
                with Client(team.listeners["PLAINTEXT"]) as client:
                    while not is_over.is_set():
                        name = f"kept-{writer}-{number}"
                        number += 1
                        if client.create(topic_read(name, "User:kept")) == [0]:
                            made.append(name)
            except OSError:
                continue

    writers = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    with ExitStack() as opened:
        clients = [opened.enter_context(Client(team.listeners["PLAINTEXT"])) for _ in range(4)]
        for each in writers:
            each.start()
        wait_for("changes", lambda: len(made) > 20 or None, ENDS_WITHIN)
        kill_worker(team)
        count = len(made)
        wait_for("more changes", lambda: len(made) > count + 20 or None, ENDS_WITHIN)
        is_over.set()
        for each in writers:
            each.join()
        closed = [_is_cut(each) for each in clients]
        assert sorted(closed) == [False, False, True, True]
        for _ in range(2):
            with Client(team.listeners["PLAINTEXT"]) as client:
                assert set(made) <= set(client.resource_names())
    with Client(team.listeners["PLAINTEXT"]) as admin:
        assert delete_of(admin, "User:kept").filter_results[0].error_code == 0
        assert not [name for name in admin.resource_names() if name.startswith("kept")]


def test_a_worker_that_does_not_take_a_change_is_ended_before_the_change_is_answered(
    team: Broker,
) -> None:
    _wait_until_idle(team)
    with ExitStack() as opened:
        alices = [opened.enter_context(logged_in(team, "alice")) for _ in range(2)]
        admins = [opened.enter_context(Client(team.listeners["PLAINTEXT"])) for _ in range(4)]
        assert admins[0].create(cluster_describe()) == [0]
        stuck = workers(team)[0]
        os.kill(stuck, signal.SIGSTOP)
        wait_for("it to stop", lambda: _is_stopped(stuck) or None, ENDS_WITHIN)
        admin = _first_served(admins)
        assert delete_of(admin, "User:alice").filter_results[0].error_code == 0
        # The kernel closes the sockets of a killed process a moment before the process is gone.
        assert not _is_stopped(stuck)
        [served] = [each for each in alices if not _is_cut(each)]
        assert described(served) == DENIED
    wait_for("ready", lambda: page(team, "/readyz")[0] == 200 or None, ENDS_WITHIN)
    [ended] = [each for each in team.events() if "not applied" in str(each.get("reason"))]
    assert ended["event"] == "worker ended; another takes its place"


def _is_stopped(pid: int) -> bool:
    with suppress(OSError):
        return ") T " in Path(f"/proc/{pid}/stat").read_text()
    return False


def _first_served(clients: list[Client]) -> Client:
    """Ask with all; returns the client that is answered first."""
    sent = {each.socket: each for each in clients}
    for each in clients:
        each.request(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    answered, _, _ = select.select(list(sent), [], [], ENDS_WITHIN)
    assert answered
    first = sent[answered[0]]
    assert first.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0
    return first


def _is_cut(client: Client) -> bool:
    try:
        described(client)
    except ConnectionClosed:
        return True
    return False


def test_users_are_known_to_all_workers_at_once(start_broker: StartBroker) -> None:
    name = "listener.name.sasl_plaintext.sasl.enabled.mechanisms"
    broker = start_broker(TEAM | {name: "PLAIN,SCRAM-SHA-256"})
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        for number in range(3):
            change = upsertion_of("sam", f"secret-{number}", "SCRAM-SHA-256", 4096)
            assert altered(admin, upsertions=[change]) == 0
            for _ in range(4):
                with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
                    assert client.login_scram("sam", f"secret-{number}").error_code == 0
        deletion = ScramCredentialDeletion("sam", 1)
        assert altered(admin, deletions=[deletion]) == 0
        for _ in range(4):
            with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
                assert client.login_scram("sam", "secret-2").error_code != 0


def altered(admin: Client, deletions: Any = (), upsertions: Any = ()) -> int:
    request = AlterUserScramCredentialsRequest(deletions, upsertions)
    answer = admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    code: int = answer.results[0].error_code
    return code


def test_sigterm_ends_all_processes_and_what_was_stored_is_there_again(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(TEAM)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("kept")) == [0]
    pids = all_processes(broker)
    assert len(pids) == 4
    # As a service manager does, or a terminal.
    for pid in pids[1:]:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
    assert broker.terminate() == 0
    wait_for("the end", lambda: all_ended(pids), ENDS_WITHIN)
    assert [each["event"] for each in broker.events()].count("ready") == 1
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.resource_names() == ["kept"]


def test_all_end_with_the_process_that_owns_the_store(start_broker: StartBroker) -> None:
    broker = start_broker(TEAM)
    pids = all_processes(broker)
    with logged_in(broker, "alice") as one, logged_in(broker, "alice") as other:
        broker.kill()
        assert one.is_closed()
        assert other.is_closed()
    wait_for("the end", lambda: all_ended(pids), ENDS_WITHIN)


def test_without_the_process_that_forks_workers_it_ends_in_good_order(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(TEAM)
    pids = all_processes(broker)
    os.kill(children(broker.running.pid)[0], signal.SIGKILL)
    assert broker.running.wait(ENDS_WITHIN) == 1
    wait_for("the end", lambda: all_ended(pids), ENDS_WITHIN)
    assert "forks workers has ended" in broker.new_log_text()


def test_users_of_the_configuration_are_read_anew_by_all_workers(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker(TEAM)
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    text = broker._properties_file.read_text()
    assert name in text
    broker._properties_file.write_text(text.replace(PASSWORDS["bob"], "other-secret"))
    broker.running.send_signal(signal.SIGHUP)
    for number in range(2):
        wait_for(
            "a reload",
            lambda number=number: _has_reloaded(broker, number),  # type: ignore[misc]
            ENDS_WITHIN,
        )
    kill_worker(broker)
    wait_for("ready", lambda: page(broker, "/readyz")[0] == 200 or None, ENDS_WITHIN)
    wait_for("a third reload", lambda: _has_reloaded(broker, 0, of=3), ENDS_WITHIN)
    for _ in range(4):
        logged_in(broker, "bob", "other-secret").close()


def _has_reloaded(broker: Broker, worker: int, of: int = 1) -> bool | None:
    events = [each for each in broker.events() if each["event"] == "configuration reloaded"]
    found = events if of > 1 else [each for each in events if each["worker"] == worker]
    return True if len(found) >= of else None


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"aclbroker.cluster": "memory"}, "a cluster in memory is in one process"),
        (
            {"confluent.metadata.server.listeners": "http://127.0.0.1:0"},
            "random key of its own",
        ),
        thorough(
            {
                "authorizer.class.name": "io.confluent.kafka.security.authorizer"
                ".ConfluentServerAuthorizer",
                "confluent.authorizer.access.rule.providers": "CONFLUENT",
            },
            "several providers are in one process",
        ),
        ({"listeners": "PLAINTEXT://127.0.0.1:{port}"}, "cannot listen"),
        thorough({"aclbroker.workers": "0"}, "aclbroker.workers"),
        thorough({"aclbroker.audit.file": "/nowhere/audit.log"}, "aclbroker.audit.file"),
        thorough({"aclbroker.store": "mysql:///x"}, "aclbroker.store"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    settings: dict[str, str], told: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        overrides = {name: value.format(port=port) for name, value in settings.items()}
        broker = Broker(tmp_path, TEAM | overrides)
        with pytest.raises(RuntimeError, match="ended") as error:
            broker.start()
    assert told in str(error.value)
    assert broker.running.wait() == 1


def test_further_clusters_and_the_http_api_are_served_by_all_workers(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    setting, _ = token_key(tmp_path)
    broker = start_broker(TEAM | MDS | setting | held("one", "two"))
    apis = [Api(broker).login() for _ in range(3)]
    made = {
        name: [f"ALLOW User:{name} READ TOPIC:LITERAL:{number} from *" for number in range(3)]
        for name in ("one", "two")
    }
    for name, acls in made.items():
        for api, acl in zip(apis, acls, strict=True):
            assert api.create(acl, name).status in (200, 204)
    for name, acls in made.items():
        assert [api.search(name) for api in apis] == [acls] * 3
    assert [api.search() for api in apis] == [[]] * 3


def test_lines_of_all_processes_stay_whole_in_a_pipe(tmp_path: Path) -> None:
    broker = Broker(tmp_path, TEAM | {"aclbroker.audit.rollup.seconds": "0"})
    broker._properties_file.write_text(properties_text(broker.properties))
    process = subprocess.Popen(broker.command, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stderr is not None
    lines: list[bytes] = []
    reading = threading.Thread(target=lambda: lines.extend(process.stderr))  # type: ignore[arg-type]
    reading.start()
    try:
        ready = wait_for("ready", lambda: _ready(lines), ENDS_WITHIN)
        with ExitStack() as opened:
            address = ready["listeners"]["PLAINTEXT"]
            clients = [opened.enter_context(Client(address)) for _ in range(4)]
            names = [f"{number}-{'n' * 200}" for number in range(500)]
            threads = [
                threading.Thread(target=client.create, args=[topic_read(name) for name in names])
                for client in clients
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN) == 0
        reading.join()
        process.stderr.close()
    events = [json.loads(line) for line in lines]
    assert sum(each["event"] == "change" for each in events) == 4 * 500


def _ready(lines: list[bytes]) -> dict[str, Any] | None:
    events = (json.loads(line) for line in list(lines))
    return next((each for each in events if each["event"] == "ready"), None)
