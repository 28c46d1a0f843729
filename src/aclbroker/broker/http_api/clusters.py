"""The clusters whose ACLs one server holds, by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from aclbroker.broker.handlers.services import Services
from aclbroker.broker.http_api.errors import ApiError
from aclbroker.broker.http_api.reading import unknown_cluster


class Clusters:
    """What serves each cluster; ``own_id`` is that of the server's own, whose users log in.

    ``services`` may change: a cluster may be waited for at first.
    """

    def __init__(self, own_id: str, services: Mapping[str, Services]) -> None:
        self.own_id = own_id
        self._services = services

    @property
    def own(self) -> Services:
        """What serves the server's own cluster."""
        return self._services[self.own_id]

    @property
    def ready(self) -> list[Services]:
        """The services of each cluster whose ACLs are loaded."""
        return [services for services in self._services.values() if not services.waits]

    def of(self, cluster_id: str) -> Services:
        """Return what serves a cluster.

        Raises `ApiError` for one that this server has not, or whose ACLs are not there.
        """
        found = self._services.get(cluster_id)
        if found is None:
            raise unknown_cluster(cluster_id, self._services)
        if found.waits:
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, found.waits)
        return found
