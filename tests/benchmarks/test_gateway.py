"""The parts of the gateway's benchmark: its programs in C, and how it shows the samples."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gateway import report, requests, rows
from benchmarks.gateway.machine import Moment
from benchmarks.gateway.programs import Load, has_tls, running_proxy
from benchmarks.gateway.rows import CPU_REQUEST, P99, REQUESTS, Comparison, Kind, Row, Sample
from benchmarks.gateway.stage import DIRECT, FEW, GATEWAY, PROXY, grant
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.gateway import cluster_in_memory, gateway_before
from tests.support.tls import LISTENERS, pem_stores
from tests.support.toolchain import missing

SMALL = requests.produce(requests.TOPIC, requests.SMALL_BYTES)
LARGE = requests.produce(requests.LARGE_TOPIC, requests.RECORD_BYTES)
TOPICS = (requests.TOPIC, requests.LARGE_TOPIC, requests.FETCHED_TOPIC)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("cluster")
    topics = ",".join(f"{topic}:1" for topic in TOPICS)
    authority = Authority()
    stores = pem_stores(directory, authority.issue(), authority)
    broker = cluster_in_memory(
        directory, **{"aclbroker.catalog.topics": topics, **LISTENERS, **stores}
    )
    yield broker
    broker.terminate()


@pytest.fixture
def proxied(cluster: Broker) -> Iterator[str]:
    """The address of a proxy before the cluster."""
    with running_proxy(cluster.listeners["PLAINTEXT"]) as proxy:
        yield proxy.address


@pytest.mark.parametrize(
    ("request_", "connections", "depth", "count"),
    [
        (SMALL, 3, 5, 400),
        (requests.metadata(), 2, 1, 50),
        (requests.list_offsets(), 1, 1, 20),
        (LARGE, 2, 2, 8),
    ],
    ids=lambda value: value.key.name if isinstance(value, requests.Request) else str(value),
)
def test_every_request_through_the_proxy_is_answered_without_an_error(
    proxied: str, request_: requests.Request, connections: int, depth: int, count: int
):
    load = Load(request_.frame, connections, depth, requests=count)
    result, answer = load.run(proxied)
    request_.check(answer)
    assert result.answers == count
    assert result.bytes == count * (len(request_.frame) + len(answer) + 4)


def test_a_large_fetch_comes_whole_through_the_proxy(proxied: str):
    filling = requests.produce(requests.FETCHED_TOPIC, requests.RECORD_BYTES)
    Load(filling.frame, requests=3).run(proxied)
    result, answer = Load(requests.fetch().frame, 2, requests=6).run(proxied)
    requests.fetch().check(answer)
    assert result.answers == 6


def test_a_refusal_is_not_measured(proxied: str):
    refused = requests.produce("missing", requests.SMALL_BYTES)
    _, answer = Load(refused.frame, requests=1).run(proxied)
    with pytest.raises(RuntimeError, match="PRODUCE was answered with the error codes"):
        refused.check(answer)


@pytest.mark.parametrize("request_", [SMALL, requests.metadata(), requests.list_offsets()])
def test_the_acls_of_the_benchmark_allow_its_requests_and_no_other_topic(
    cluster: Broker, tmp_path: Path, request_: requests.Request
):
    settings = {"super.users": "User:admin"}
    gateway = gateway_before(cluster.listeners["PLAINTEXT"], tmp_path, **settings)
    try:
        grant(gateway, FEW)
        _, answer = Load(request_.frame, 2, requests=6).run(gateway.listeners["PLAINTEXT"])
        request_.check(answer)
        foreign = requests.produce("owned-1", requests.SMALL_BYTES)
        _, answer = Load(foreign.frame, requests=1).run(gateway.listeners["PLAINTEXT"])
        with pytest.raises(RuntimeError, match="29"):
            foreign.check(answer)
    finally:
        gateway.terminate()


def test_the_load_client_speaks_tls(cluster: Broker):
    if not has_tls():
        missing("OpenSSL's headers are not installed (libssl-dev)")
    load = Load(LARGE.frame, 2, 2, requests=8, tls=True)
    result, answer = load.run(cluster.listeners["SSL"])
    LARGE.check(answer)
    assert result.answers == 8


def test_connections_stay_open_within_the_block(cluster: Broker, proxied: str):
    load = Load(requests.metadata().frame, 20, requests=20)
    with load.held(proxied):
        assert open_connections(proxied) == 20
    assert open_connections(proxied) == 0


def open_connections(address: str) -> int:
    """Return how many established connections a listener has, as the kernel lists them."""
    port = int(address.split(":")[1])
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(field[1].endswith(f":{port:04X}") and field[3] == "01" for field in fields)


LINES = (
    Comparison(CPU_REQUEST, PROXY, Kind.RATIO, 2.0),
    Comparison(REQUESTS, DIRECT, Kind.RATIO, 0.9, at_least=True),
    Comparison(P99, DIRECT, Kind.ADDED, 150.0),
)
FASTER = Sample(seconds=2, cpu_seconds=1, answers=100_000, p99_us=400)
SLOWER = Sample(seconds=2, cpu_seconds=3, answers=50_000, p99_us=500)
SAMPLES = {DIRECT: [FASTER], PROXY: [FASTER], GATEWAY: [SLOWER]}


def shown(load: float = 0.0) -> list[str]:
    row = Row("small", "Small requests", lambda *_: Sample(), LINES)
    samples = {side: [one._replace(load=load) for one in SAMPLES[side]] for side in rows.BASIC}
    page = report.page({"command": "bench"}, [row], {"small": samples})
    return [line for line in page.splitlines() if "| gateway |" in line]


def test_targets_are_compared_with_ratios_and_differences():
    cpu, throughput, p99 = shown()
    assert "| 60.0 µs | C proxy | 10.0 µs | 6.00x | <= 2x | missed |" in cpu
    assert "| 25,000 /s | direct | 50,000 /s | 0.5x | >= 0.9x | missed |" in throughput
    assert "| 500 µs | direct | 400 µs | 100 µs more | <= 150 µs | reached |" in p99


def test_a_comparison_with_a_direct_connection_does_not_count_on_a_busy_machine():
    cpu, throughput, p99 = shown(load=4.0)
    assert "missed" in cpu
    assert "does not count" in throughput
    assert "does not count" in p99


def test_the_cores_that_other_programs_use_are_those_beside_this_process():
    before = Moment(clock=10.0, busy=100.0, own=5.0)
    assert before.others_until(Moment(clock=12.0, busy=103.0, own=6.0)) == 1.0
    now = Moment.now()
    assert now.busy > now.own > 0
