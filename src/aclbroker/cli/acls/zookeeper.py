"""`aclbroker acls --authorizer-properties zookeeper.connect=...`: the ACLs in ZooKeeper's nodes.

Like kafka-acls.sh of Kafka 3.9.1, the last version with these options, it reads and writes the
nodes of AclAuthorizer without a broker. Brokers, also Kafka's, see the changes at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Self

from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.settings import read_given
from aclbroker.broker.config.store_url import ZOOKEEPER_AUTHORIZERS, zookeeper_url
from aclbroker.cli.acls.options import Options
from aclbroker.cli.migrate.places import PlaceError
from aclbroker.cli.migrate.places.stores import SharedStorePlace
from aclbroker.terminal import put

_LOGIN: Final = "aclbroker.zookeeper.sasl.jaas.config"
_OF_FILE: Final = ("zookeeper.ssl.", "authorizer.zookeeper.ssl.", _LOGIN)
_TIMEOUTS: Final = (
    *("authorizer.zookeeper.connection.timeout.ms", "zookeeper.connection.timeout.ms"),
)


class ZookeeperTarget:
    """The ACLs in ZooKeeper. Methods raise ValueError with the reason."""

    behind_entries = " "

    def __init__(self, options: Options) -> None:
        properties = _properties(options)
        url = zookeeper_url(properties)
        if not url:
            raise ValueError(
                "Missing required configuration `zookeeper.connect` which has no default value."
            )
        timeout = next((properties[name] for name in _TIMEOUTS if name in properties), "")
        with _told():
            self._place = SharedStorePlace(url, properties=properties)
        if timeout.isdecimal():
            self._place.opened_within_s = int(timeout) / 1000
        self.status = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._place.close()

    def find(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return the ACLs that a filter selects; none if ZooKeeper has no nodes of ACLs.

        An unreadable node is an error, as in Kafka, because its ACLs may be DENYs.
        """
        with _told():
            found = self._place.read(may_be_new=True)
        if found.notes:
            raise ValueError(f"{self._place.url}: {'; '.join(found.notes)}")
        return filter(acl_filter.matches, found.acls)

    def known(self, acl_filter: AclFilter) -> Collection[AclBinding]:
        """Return nothing: Kafka's tool does not report existing ACLs in ZooKeeper."""
        return ()

    def add(self, acls: Sequence[AclBinding]) -> None:
        """Add ACLs in one transaction, and print why ZooKeeper cannot hold an ACL."""
        with _told():
            reasons = {acl: self._place.refusal(acl) for acl in acls}
            fine = [acl for acl, reason in reasons.items() if reason is None]
            if fine:
                self._place.write(fine, ())
        for reason in reasons.values():
            if reason is not None:
                put(f"Error while adding ACLs: {reason}")
                self.status = 1

    def remove(self, filters: Sequence[AclFilter]) -> None:
        """Remove the ACLs that filters select in one transaction."""
        acls = {acl for each in filters for acl in self.find(each)}
        if acls:
            with _told():
                self._place.write((), acls)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except PlaceError as error:
        raise ValueError(str(error)) from None


def _properties(options: Options) -> Mapping[str, str]:
    """Return the settings of the options. Raises ValueError."""
    name = options.one("authorizer")
    if name is not None and name not in ZOOKEEPER_AUTHORIZERS:
        raise ValueError(
            f"--authorizer {name}: aclbroker has none of this class, but {ZOOKEEPER_AUTHORIZERS[0]}"
        )
    given: dict[str, str] = {}
    for text in options.all("authorizer-properties"):
        key, _, value = text.partition("=")
        if not key or not value:
            # The brace is in Kafka's own text.
            raise ValueError(f"Missing value for key {key}}}")
        given[key] = value
    file = options.one("zk-tls-config-file")
    if file is not None:
        given |= _of_file(file)
    # As in Kafka's tool, new nodes belong to the user of a login, if there is one.
    return {"zookeeper.set.acl": "true" if _LOGIN in given else "false", **given}


def _of_file(file: str) -> Mapping[str, str]:
    try:
        found = read_given(file)[0]
    except ClientConfigError as error:
        raise ValueError("; ".join(error.problems)) from None
    return {name: each.value for name, each in found.items() if name.startswith(_OF_FILE)}
