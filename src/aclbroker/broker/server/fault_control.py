"""The port at which tests of other processes ask for faults: GET, POST and DELETE of /faults."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from aclbroker.broker.config import Config
from aclbroker.broker.config.endpoints import is_loopback
from aclbroker.broker.handlers.faults import Fault, Faults, api_key, error_code
from aclbroker.broker.observability.http_listener import Asked, Commands, HttpListener, Page
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.start_error import naming
from aclbroker.protocol.messages import APIS, ApiKey

log = get_logger()

PATH: Final = "/faults"
_NAMES: Final = ("request", "error", "count", "delay", "closes")
_BOOLEANS: Final = {"true": True, "false": False}


class FaultControl(NamedTuple):
    """The faults that are to come, and the URL at which more are asked for."""

    faults: Faults
    url: str


@contextmanager
def fault_control(config: Config, faults: Faults) -> Iterator[FaultControl | None]:
    """Serve inside the block what adds to ``faults``; gives None where that is off.

    Raises `StartError` if the address cannot be bound.
    """
    if config.faults_address is None:
        yield None
        return
    host, port = config.faults_address
    shown = f"[{host}]" if ":" in host else host
    with naming("aclbroker.faults.address", f"{shown}:{port}", "cannot listen"):
        listener = HttpListener(host, port, {}, fault_commands(faults, config.faults_token))
    url = f"http://{shown}:{listener.port}{PATH}"
    log.warning("whoever reaches this address may let requests fail", faults=url)
    try:
        yield FaultControl(faults, url)
    finally:
        listener.close()


def fault_commands(faults: Faults, token: str | None) -> Commands:
    """Return what lists, adds and forgets faults, for those who have the token, if there is one."""

    def listed(_: Asked) -> Page:
        return _page(faults)

    def added(asked: Asked) -> Page:
        try:
            faults.add(*fault_of(asked.query))
        except ValueError as error:
            return Page(f"{error}\n", HTTPStatus.BAD_REQUEST)
        return _page(faults, HTTPStatus.CREATED)

    def forgotten(_: Asked) -> Page:
        faults.clear()
        return _page(faults)

    def guarded(asked: Asked, method: str) -> Page:
        refused = _refused(asked, token)
        return commands[method](asked) if refused is None else refused

    commands = {"GET": listed, "POST": added, "DELETE": forgotten}
    return {PATH: {each: lambda asked, each=each: guarded(asked, each) for each in commands}}


def fault_of(query: str) -> tuple[ApiKey, Fault]:
    """Return the fault that a query such as ``request=Produce&count=2`` asks for.

    Raises ValueError for what there is not.
    """
    given = parse_qsl(query, keep_blank_values=True, max_num_fields=2 * len(_NAMES))
    values = dict(given)
    if len(values) != len(given) or not values.keys() <= set(_NAMES) or "request" not in values:
        raise ValueError(f"a fault has a request, and once each at most: {', '.join(_NAMES[1:])}")
    count, closes = values.get("count", "1"), values.get("closes", "false")
    if not (count.isascii() and count.isdecimal() and len(count) < 10):
        raise ValueError("count is a number of requests, such as 2")
    if closes not in _BOOLEANS:
        raise ValueError("closes is true or false")
    try:
        delay = float(values.get("delay", "0"))
    except ValueError:
        raise ValueError("delay is a number of seconds, such as 0.5") from None
    code = error_code(values["error"]) if "error" in values else None
    return api_key(values["request"]), Fault(int(count), code, _BOOLEANS[closes], delay)


def _refused(asked: Asked, token: str | None) -> Page | None:
    """Return the refusal of somebody who may not ask for faults, None for anybody else."""
    header = asked.header
    if token is not None:
        shown = header.get("authorization", "").encode()
        if hmac.compare_digest(shown, f"Bearer {token}".encode()):
            return None
        more = ("WWW-Authenticate: Bearer",)
        return Page("the token is needed\n", HTTPStatus.UNAUTHORIZED, more=more)
    # A page that a browser of this machine shows is no program of this machine: it tells where it
    # is from, or comes by a name of its own.
    if "origin" in header or not _names_this_machine(header.get("host", "")):
        return Page("only programs on this machine may ask\n", HTTPStatus.FORBIDDEN)
    return None


def _names_this_machine(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname)
    except ValueError:
        return False


def _page(faults: Faults, status: HTTPStatus = HTTPStatus.OK) -> Page:
    coming = [_shown(key, fault) for key, fault in faults.coming()]
    return Page(f"{json.dumps({'faults': coming})}\n", status, "application/json")


def _shown(key: ApiKey, fault: Fault) -> dict[str, Any]:
    return {
        "request": APIS[key].name,
        "error": None if fault.code is None else fault.code.name,
        "count": fault.count,
        "delay": fault.delay,
        "closes": fault.closes,
    }
