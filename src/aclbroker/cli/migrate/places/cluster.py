"""A cluster that is asked for its ACLs, and told to change them: ``kafka+acls://HOST:PORT``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from aclbroker.acl.bindings import AclBinding, PatternType
from aclbroker.broker.client.acls import (
    MOST_FILTERS,
    delete_acls,
    describe_acls,
    exactly,
    refusals,
)
from aclbroker.broker.client.blocking import NoAnswer
from aclbroker.broker.client.errors import (
    ClientConfigError,
    ClientError,
    RequestRefused,
    Unreachable,
    code_name,
)
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.broker.stores.cluster import identity_of_session
from aclbroker.broker.stores.identity import SourceIdentity
from aclbroker.cli.migrate.places.place import Contents, Place, PlaceError
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import LONGEST_STRING
from aclbroker.terminal import complain

T = TypeVar("T")

_OF_THE_ACL: Final = (ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION)
"""Codes that tell that a cluster does not take an ACL, and may take the others."""

_SCHEME: Final = "kafka+acls://"
_DESCRIBE: Final = ("described", "DESCRIBE")
_CREATE: Final = ("created", "ALTER")
_DELETE: Final = ("deleted", "ALTER")
"""What is done to ACLs, and the right on the cluster that it needs."""

_MOST_BYTES: Final = 1 << 20
"""How large the names in one request are at most: a controller writes it as one batch, of 8 MiB."""


class ClusterPlace(Place):
    """Any cluster, through DescribeAcls, CreateAcls and DeleteAcls, as the user of its settings."""

    removed_at_once = MOST_FILTERS

    # Brokers learn what their controller has written a moment later.
    settles_within = 15.0

    def __init__(self, url: str, config: str | None = None) -> None:
        if "@" in url:
            raise PlaceError(f"{_SCHEME}: no login stands in a URL, but in --command-config FILE")
        super().__init__(url)
        try:
            self._addresses = read_addresses(url.removeprefix(_SCHEME), _SCHEME)
            self._settings = read_settings(config)
        except ClientConfigError as error:
            raise PlaceError("\n".join(error.problems)) from error
        for warning in self._settings.warnings:
            complain(f"aclbroker: {warning}")
        self._session: Session | None = None
        self._only_literal: bool | None = None

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return what DescribeAcls answers."""
        return Contents(list(dict.fromkeys(self._ask(describe_acls, *_DESCRIBE))))

    def identity(self) -> SourceIdentity:
        """Return the id of the cluster, and the epoch and offset of its metadata."""
        return self._ask(identity_of_session, *_DESCRIBE)

    def refusal(self, acl: AclBinding) -> str | None:
        """Tell why no cluster, or one that knows version 0 of the requests alone, has an ACL."""
        if self._only_literal is None:
            version = self._ask(lambda to: to.version(ApiKey.CREATE_ACLS), *_CREATE)
            self._only_literal = version == 0
        if self._only_literal and acl.pattern_type is not PatternType.LITERAL:
            return "a cluster that knows version 0 of CreateAcls alone has LITERAL patterns only"
        reason = super().refusal(acl)
        texts = (acl.resource_name, acl.principal, acl.host)
        if reason is None and any(len(text.encode()) > LONGEST_STRING for text in texts):
            return f"requests take texts of {LONGEST_STRING} bytes at most"
        return reason

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        """Create ACLs, and then delete others."""
        refused: dict[AclBinding, str] = {}
        for some in _parts(added):
            refused |= self._create(some)
        for some in _parts(removed):
            filters = [exactly(acl) for acl in some]
            self._ask(partial(delete_acls, filters=filters), *_DELETE)
        return refused

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _create(self, acls: Sequence[AclBinding]) -> dict[AclBinding, str]:
        answers = self._ask(partial(refusals, acls=acls), *_CREATE)
        found: dict[AclBinding, str] = {}
        for acl, error in zip(acls, answers, strict=True):
            if error is None:
                continue
            if error.code == ErrorCode.UNKNOWN_SERVER_ERROR and len(acls) > 1:
                # One that a cluster fails on can fail them all; it is found among the halves.
                middle = len(acls) // 2
                return self._create(acls[:middle]) | self._create(acls[middle:])
            if error.code not in (*_OF_THE_ACL, ErrorCode.UNKNOWN_SERVER_ERROR):
                raise PlaceError(f"{self.url}: {_refusal(error, *_CREATE)}")
            found[acl] = f"{code_name(error.code)}: {error}"
        return found

    def _ask(self, question: Callable[[Session], T], doing: str, right: str) -> T:
        """Ask a question, again if a connection that was used before is not there any more."""
        try:
            if self._session is not None:
                try:
                    return question(self._session)
                except Unreachable as error:
                    if isinstance(error.__cause__, NoAnswer):
                        raise
                    self.close()
            self._session = open_session(self._addresses, self._settings)
            return question(self._session)
        except RequestRefused as error:
            raise PlaceError(f"{self.url}: {_refusal(error, doing, right)}") from error
        except ClientError as error:
            self.close()
            raise PlaceError(f"{self.url}: {error}") from error


def _refusal(error: RequestRefused, doing: str, right: str) -> str:
    told = f"its ACLs cannot be {doing}: {code_name(error.code)}: {error}"
    if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return f"{told} (It needs {right} on the cluster.)"
    return told


def _parts(acls: Collection[AclBinding]) -> Iterator[list[AclBinding]]:
    """Return ACLs in lists of so many names as one request takes."""
    some: list[AclBinding] = []
    size = 0
    for acl in acls:
        some.append(acl)
        size += 4 * (len(acl.resource_name) + len(acl.principal) + len(acl.host))
        if size > _MOST_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some
