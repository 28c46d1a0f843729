"""Runs the load generator (`go/cmd/load`): one small request over and over on many connections."""

from __future__ import annotations

import json
import subprocess
from typing import NamedTuple

from aclbroker.protocol.messages import ApiKey
from benchmarks.exchange import decoded, login_frames
from benchmarks.peers import go_program
from benchmarks.requests import METADATA_VERSION, SMALL_METADATA, told
from benchmarks.servers import Server
from tests.support.client import request_frame

CONNECTIONS = 64


class Load(NamedTuple):
    """What a run of the generator gave: requests per second of time, and of the server's CPU.

    ``p99`` is in milliseconds, ``generators_share`` the percentage of
    the generator in the CPU time of both.
    """

    rate: float
    rate_per_core: float
    p99: float
    generators_share: float


def small_requests(server: Server, user: str, warm_up: float, measured: float) -> Load:
    """Ask for the Metadata of one topic for so many seconds, after a warm-up.

    Raises RuntimeError if the generator fails, or the answer is an error.
    """
    request = request_frame(ApiKey.METADATA, METADATA_VERSION, SMALL_METADATA)
    command = [
        go_program("load"),
        f"-address={server.address}",
        f"-login={','.join(frame.hex() for frame in login_frames(user))}",
        f"-request={request.hex()}",
        f"-connections={CONNECTIONS}",
        f"-warm-up={warm_up}s",
        f"-measure={measured}s",
        f"-pids={','.join(map(str, server.pids))}",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60 + warm_up + measured
    )
    if done.returncode:
        raise RuntimeError(f"the load generator failed: {done.stderr}")
    result = json.loads(done.stdout)
    answer = decoded(ApiKey.METADATA, METADATA_VERSION, bytes.fromhex(result["answer"]))
    if not told(answer):
        raise RuntimeError(f"the topic was not described: {answer}")
    requests, servers = result["requests"], result["server_cpu_seconds"]
    own = result["own_cpu_seconds"]
    return Load(
        requests / result["seconds"],
        requests / servers,
        result["p99_seconds"] * 1000,
        100 * own / (own + servers),
    )
