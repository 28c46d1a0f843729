"""Takes over a changed configuration on SIGHUP, as far as that is possible without a restart.

What is taken over is users of PLAIN, super users and what else decides beside the ACLs, and the
levels of the log and of the audit log; certificates have a watch of their own (`certificates`). Of
other changed settings the log gets the names. The new configuration is read as at start, and in a
thread, since it may look names up and open key stores; one that is not valid changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from aclbroker.acl.authorizer import Authorizer
from aclbroker.broker.authorizer.standard import RECONFIGURABLE, StandardAuthorizer
from aclbroker.broker.config import Config, ConfigError, concerns_us, listener_prefix
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import get_logger, set_level
from aclbroker.broker.server.held_clusters import HeldCluster
from aclbroker.broker.server.server import Server

log = get_logger()

_LOG_LEVEL: Final = "aclbroker.log.level"
_AUDIT_LEVEL: Final = "aclbroker.audit.level"
_AUDIT_FILE: Final = "aclbroker.audit.file"
_OF_CLUSTERS: Final = ("super.users", "broker.users")
_NOT_RELOADED: Final = "configuration not reloaded; the old one stays"


class Reload:
    """Compares the configuration in force with what ``read`` returns, and takes changes over.

    ``read`` raises `ConfigError`. ``clusters`` are the further ones, also those that come later.
    """

    def __init__(
        self,
        config: Config,
        read: Callable[[], Config],
        authorizer: Authorizer | None,
        server: Server,
        audit: Audit,
        clusters: Mapping[str, HeldCluster] = MappingProxyType({}),
    ) -> None:
        self._in_force = dict(config.properties)
        self._warnings: Collection[str] = config.warnings
        self._read = read
        self._authorizer = authorizer
        self._server = server
        self._audit = audit
        self._clusters = clusters
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Have the configuration read again soon."""
        self._asked.set()

    async def watch(self) -> None:
        """Take over what has changed each time that somebody asks, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                self._take_over(await asyncio.to_thread(self._read))
            except ConfigError as error:
                log.error(_NOT_RELOADED, problems=list(error.problems))
            except OSError as error:
                log.error(_NOT_RELOADED, problems=[f"{_AUDIT_FILE}: {error.strerror or error}"])
            except Exception:
                log.exception(_NOT_RELOADED)

    def _take_over(self, config: Config) -> None:
        changed = self._changed(config.properties)
        takers = self._takers(config)
        taken = changed & takers.keys()
        for take in dict.fromkeys(take for name, take in takers.items() if name in taken):
            take()
        for name in taken:
            if name in config.properties:
                self._in_force[name] = config.properties[name]
            else:
                del self._in_force[name]
        self._server.show(self._in_force)
        log.info("configuration reloaded", changed=sorted(taken))
        rest = sorted(name for name in changed - taken if concerns_us(name))
        if rest:
            log.warning("changed settings need a restart", settings=rest)
        for warning in config.warnings:
            if warning not in self._warnings:
                log.warning(warning)
        self._warnings = config.warnings

    def _changed(self, properties: Mapping[str, str]) -> set[str]:
        names = self._in_force.keys() | properties.keys()
        return {name for name in names if self._in_force.get(name) != properties.get(name)}

    def _takers(self, config: Config) -> dict[str, Callable[[], None]]:
        """What takes over the new value of each setting that can be taken over.

        The first may raise `OSError`, so that nothing has changed then.
        """
        takers: dict[str, Callable[[], None]] = {
            _AUDIT_LEVEL: lambda: self._audit.set_level(config.audit_level),
            _LOG_LEVEL: lambda: set_level(config.log_level),
        }
        authorizer = self._authorizer
        if isinstance(authorizer, StandardAuthorizer):

            def decide_anew() -> None:
                authorizer.reconfigure(config.properties)

            takers |= dict.fromkeys(RECONFIGURABLE, decide_anew)
        for cluster in config.clusters:
            if cluster.cluster_id in self._clusters:
                own = self._clusters[cluster.cluster_id]
                decide = partial(own.reconfigure, cluster.properties)
                prefix = f"{CLUSTER_PREFIX}{cluster.cluster_id}."
                takers |= {f"{prefix}{name}": decide for name in _OF_CLUSTERS}
        users = {
            listener.name: listener.mechanisms["PLAIN"]
            for listener in config.listeners
            if "PLAIN" in listener.mechanisms
        }

        def admit_anew() -> None:
            self._server.use_plain_users(users)

        names = (f"{listener_prefix(name)}plain.sasl.jaas.config" for name in users)
        return takers | dict.fromkeys(names, admit_anew)
