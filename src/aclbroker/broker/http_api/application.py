"""The routes of the API, over aiohttp: what is asked, of whom, and how answers are written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from http import HTTPStatus
from json import dumps
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from aiohttp import hdrs, web

from aclbroker.broker.credentials.changes import NotStored
from aclbroker.broker.http_api import calls
from aclbroker.broker.http_api.asking import authorize_request_of
from aclbroker.broker.http_api.authorizing import decided
from aclbroker.broker.http_api.bodies import (
    JSON,
    MOST_OF_BODY,
    SERVER_NAME,
    answer_of,
    body_of,
    expect_body,
    refusal_of,
    refusal_of_http,
    size_of_body,
)
from aclbroker.broker.http_api.calls import Caller, Chunks
from aclbroker.broker.http_api.clusters import Clusters
from aclbroker.broker.http_api.errors import ApiError, bad_request
from aclbroker.broker.http_api.messages import creation_of, list_json, selection_of
from aclbroker.broker.http_api.openapi import document
from aclbroker.broker.http_api.reading import parsed
from aclbroker.broker.http_api.registry import ClusterRegistry, clusters_of
from aclbroker.broker.http_api.scheduling import next_turn
from aclbroker.broker.http_api.users import CallerRefused, Users
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import StoreError
from aclbroker.broker.turns import Turns
from aclbroker.protocol.messages import ApiKey

log = get_logger()

T = TypeVar("T")

_SMALL_BODY: Final = 8_192
"""Up to this size a body is read before its caller's rights: that takes below a millisecond."""

_WRITE_SECONDS: Final = 30.0
"""How long a client may take to read a part of an answer."""

_CHALLENGE: Final = 'Bearer realm="aclbroker", Basic realm="aclbroker", charset="UTF-8"'
_NO_ROLES: Final = "Role bindings are not offered here: rights are given by ACLs."


class Peer(Protocol):
    """What the server knows of the connection that a request has come by.

    ``host`` is the peer's address, ``listener`` the URL of the listener.
    """

    host: str
    listener: str
    security_protocol: str

    def begins(self, *, has_body: bool) -> None:
        """Note that a request's header is complete; its body is read only within `body`."""

    def ends(self) -> None:
        """Note that its answer is about to be written, or has been."""

    def logged_in(self, mechanism: str) -> None:
        """Note who calls has been proved."""

    def refused(self, reason: str, *, is_guess: bool) -> None:
        """Note that who calls has not been proved, maybe by a wrong password."""

    def body(self, principal: str, size: int) -> AbstractAsyncContextManager[None]:
        """Wait until the principal may send a body of ``size`` bytes; the block reads it."""

    def holds(self, principal: str, size: int) -> Callable[[int], None]:
        """Hold an answer of so many bytes; return what gives some of them back."""


class Parts(NamedTuple):
    """What the API works with. ``addresses`` are the URLs of each scheme that clients are told."""

    clusters: Clusters
    users: Users
    registry: ClusterRegistry
    addresses: Callable[[], Mapping[str, Sequence[str]]]
    peer: Callable[[web.BaseRequest], Peer]
    failure_delay: float
    turns: Turns


class Application:
    """The calls of the API."""

    def __init__(self, parts: Parts) -> None:
        self._clusters = parts.clusters
        self._users = parts.users
        self._registry = parts.registry
        self._addresses = parts.addresses
        self._peer = parts.peer
        self._failure_delay = parts.failure_delay
        self._turns = parts.turns

    def made(self) -> web.Application:
        """Return it as aiohttp serves it."""
        made = web.Application(client_max_size=MOST_OF_BODY, middlewares=[self._guarded])
        made.on_response_prepare.append(_sign)
        security, registry = "/security/1.0", "/security/1.0/registry/clusters"
        # By itself {name} stands for no name with a brace.
        by_name = f"{registry}/{{name:[^/]+}}"
        made.add_routes(
            [
                web.get("/openapi.json", self._openapi),
                web.get(f"{security}/features", self._features),
                web.get(f"{security}/authenticate", self._authenticate),
                web.post(f"{security}/acls", self._create, expect_handler=expect_body),
                web.post(f"{security}/acls:search", self._search, expect_handler=expect_body),
                web.delete(f"{security}/acls", self._delete, expect_handler=expect_body),
                web.put(f"{security}/authorize", self._authorize, expect_handler=expect_body),
                web.get(f"{security}/metadataClusterId", self._cluster_id),
                web.get(f"{security}/activenodes/{{scheme}}", self._active_nodes),
                web.get("/v1/metadata/id", self._metadata_id),
                web.get(registry, self._registered),
                web.post(registry, self._register, expect_handler=expect_body),
                web.get(by_name, self._registered_by_name),
                web.delete(by_name, self._unregister),
            ]
        )
        for path in ("principals", "roles", "roleNames", "lookup", "rbac"):
            made.router.add_route("*", f"{security}/{path}", self._no_roles)
            made.router.add_route("*", f"{security}/{path}/{{rest:.*}}", self._no_roles)
        return made

    # -- what anybody may ask

    async def _openapi(self, _request: web.Request) -> web.StreamResponse:
        return answer_of(document())

    async def _features(self, _request: web.Request) -> web.StreamResponse:
        features = {
            "basic.auth.1.enabled": True,
            "oidc.login.device.1.enabled": False,
            "rbac.1.enabled": False,
        }
        legend = {
            "basic.auth.1.enabled": "Users log in with a name and a password.",
            "oidc.login.device.1.enabled": "Users log in with a browser.",
            "rbac.1.enabled": "Rights can be given by roles.",
        }
        return answer_of({"features": features, "legend": legend})

    async def _metadata_id(self, _request: web.Request) -> web.StreamResponse:
        clusters = {"kafka-cluster": self._clusters.own_id}
        return answer_of({"id": "", "scope": {"path": [], "clusters": clusters}})

    async def _authenticate(self, request: web.Request) -> web.StreamResponse:
        peer = self._peer(request)
        authorization = request.headers.get(hdrs.AUTHORIZATION)
        proved = await self._users.proved(authorization, peer.host, by_token=False)
        # That there is a principal for the user is seen now, and not at the first call.
        self._users.session(proved, peer.host, peer.listener, peer.security_protocol)
        peer.logged_in(proved.mechanism)
        token, seconds = self._users.issue(proved)
        answer = {"auth_token": token, "token_type": "Bearer", "expires_in": seconds}
        return answer_of(answer, headers={hdrs.CACHE_CONTROL: "no-store"})

    # -- what is asked by somebody

    async def _create(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        creation = await self._read(request, caller, ApiKey.CREATE_ACLS, creation_of)
        await calls.create(self._clusters.of(creation.cluster_id), caller, creation)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _search(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        selection = await self._read(request, caller, ApiKey.DESCRIBE_ACLS, selection_of)
        chunks = await calls.search(self._clusters.of(selection.cluster_id), caller, selection)
        return await self._written(request, caller, chunks)

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        selection = await self._read(request, caller, ApiKey.DELETE_ACLS, selection_of)
        chunks = await calls.delete(self._clusters.of(selection.cluster_id), caller, selection)
        return await self._written(request, caller, chunks)

    async def _authorize(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        asked = await self._read(request, caller, None, authorize_request_of)
        groups = self._users.groups(asked.principal)
        return answer_of(await decided(self._clusters, caller, asked, groups))

    async def _cluster_id(self, request: web.Request) -> web.StreamResponse:
        await self._caller(request)
        # The bare id, although the type is JSON. Confluent's schema has it so, and its clients put
        # the body into a scope unchanged.
        return web.Response(text=self._clusters.own_id, content_type=JSON)

    async def _active_nodes(self, request: web.Request) -> web.StreamResponse:
        await self._caller(request)
        scheme = request.match_info["scheme"]
        if scheme not in ("http", "https"):
            raise bad_request("The protocol must be http or https.")
        return answer_of(list(self._addresses().get(scheme, ())))

    async def _no_roles(self, request: web.Request) -> web.StreamResponse:
        await self._caller(request)
        raise ApiError(HTTPStatus.NOT_IMPLEMENTED, _NO_ROLES)

    # -- the registry of clusters

    async def _registered(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        await calls.require_describe(self._clusters.own, caller)
        clusters = self._registry.clusters(request.query.get("clusterType"))
        chunks = await caller.in_turns(
            self._clusters.own, ApiKey.DESCRIBE_ACLS, lambda: list(list_json(map(dumps, clusters)))
        )
        return await self._written(request, caller, chunks)

    async def _registered_by_name(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        await calls.require_describe(self._clusters.own, caller)
        return answer_of(self._registry.cluster(request.match_info["name"]))

    async def _register(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        await calls.require_alter(self._clusters.own, caller)
        clusters = await self._read(request, caller, None, clusters_of)
        await self._registry.register(caller, self._clusters.own.audit, clusters)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _unregister(self, request: web.Request) -> web.StreamResponse:
        caller = await self._caller(request)
        await calls.require_alter(self._clusters.own, caller)
        name = request.match_info["name"]
        await self._registry.unregister(caller, self._clusters.own.audit, name)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    # -- what calls have in common

    async def _caller(self, request: web.Request) -> Caller:
        """Return who calls, by a token or a password; raises `CallerRefused`."""
        peer = self._peer(request)
        authorization = request.headers.get(hdrs.AUTHORIZATION)
        proved = await self._users.proved(authorization, peer.host, by_token=True)
        session = self._users.session(proved, peer.host, peer.listener, peer.security_protocol)
        peer.logged_in(proved.mechanism)
        return Caller(session, request.headers.get(hdrs.USER_AGENT))

    async def _read(
        self,
        request: web.Request,
        caller: Caller,
        key: ApiKey | None,
        understand: Callable[[Any], T],
    ) -> T:
        """Return the parsed body of a request; raises `ApiError`.

        ``key`` is None for a call whose rights are checked elsewhere. For any other call, a long
        body is read only if the caller has the right in at least one cluster.
        """
        if key is not None and size_of_body(request) > _SMALL_BODY:
            await calls.require_anywhere(self._clusters, caller, key)
        principal = caller.session.principals[0]
        body = await body_of(request, partial(self._peer(request).body, principal))
        return await caller.in_turns(
            self._clusters.own, key or ApiKey.DESCRIBE_ACLS, lambda: understand(parsed(body))
        )

    async def _written(
        self, request: web.Request, caller: Caller, chunks: Chunks
    ) -> web.StreamResponse:
        """Write a long answer part by part, as its client reads it."""
        size = sum(map(len, chunks))
        answer = web.StreamResponse(headers={hdrs.CONTENT_TYPE: JSON})
        answer.content_length = size
        principal = caller.session.principals[0]
        give_back = self._peer(request).holds(principal, size)
        try:
            await answer.prepare(request)
            chunks.reverse()
            while chunks:
                chunk = chunks.pop()
                async with asyncio.timeout(_WRITE_SECONDS):
                    await answer.write(chunk)
                give_back(len(chunk))
                size -= len(chunk)
                await next_turn(self._turns, caller.session.host)
        finally:
            give_back(size)
        return answer

    @web.middleware
    async def _guarded(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Answer, and make an answer of each error."""
        peer = self._peer(request)
        peer.begins(has_body=request.body_exists)
        try:
            await next_turn(self._turns, peer.host)
            return await handler(request)
        except CallerRefused as refusal:
            return await self._unproved(peer, refusal)
        except ApiError as error:
            return refusal_of(error)
        except web.HTTPException as error:
            return refusal_of_http(request, error)
        except (NotStored, StoreError) as error:
            return refusal_of(ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)))
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            log.exception("request failed", peer=peer.host, path=request.path[:256])
            text = "Something went wrong; the server's log says what."
            return refusal_of(ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, text, ends=True))
        finally:
            peer.ends()

    async def _unproved(self, peer: Peer, refusal: CallerRefused) -> web.Response:
        """Refuse an unauthenticated caller after a delay, which slows down guesses of passwords."""
        peer.refused(refusal.reason, is_guess=refusal.is_guess)
        await asyncio.sleep(self._failure_delay)
        # The delays of many calls can end at the same moment.
        await next_turn(self._turns, peer.host)
        error = ApiError(HTTPStatus.UNAUTHORIZED, str(refusal), ends=refusal.is_guess)
        answer = refusal_of(error)
        answer.headers[hdrs.WWW_AUTHENTICATE] = _CHALLENGE
        return answer


async def _sign(_request: web.Request, answer: web.StreamResponse) -> None:
    """Say no more of what serves than its name."""
    answer.headers[hdrs.SERVER] = SERVER_NAME
