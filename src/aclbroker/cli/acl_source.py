"""Reads the ACLs of a cluster, logged in as the user of a Kafka client's properties file.

And those of files that no text editor reads: a store, and the metadata log of a controller.
"""

from __future__ import annotations

from aclbroker.acl.bindings import AclBinding, invalid_reason
from aclbroker.acl.files.policy import Policy
from aclbroker.broker.client.acls import describe_acls
from aclbroker.broker.client.cluster_info import cluster_id
from aclbroker.broker.client.errors import ClientError, RequestRefused
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.broker.urls import without_login
from aclbroker.pipeline.errors import InputError
from aclbroker.protocol.errors import ErrorCode
from aclbroker.terminal import complain


def of_place(url: str) -> list[AclBinding]:
    """Return the ACLs of a place such as ``kraft:///DIR``: see `cli.migrate.places`.

    What is to be said of how they were read is told on standard error. Raises InputError.
    """
    from aclbroker.cli.migrate.places import PlaceError, open_place

    try:
        with open_place(url) as place:
            found = place.read()
    except PlaceError as error:
        raise InputError(str(error)) from error
    for note in found.notes:
        complain(f"aclbroker: {url}: {note}")
    return _understood(found.acls, url)


def described(address: str, command_config: str | None) -> Policy:
    """Return all ACLs of the cluster at HOST:PORT, and the id of the cluster.

    Raises InputError with the reason if they cannot be read, which is never told as a cluster that
    has none.
    """
    try:
        settings = read_settings(command_config)
        with open_session(read_addresses(address), settings) as session:
            acls = _understood(describe_acls(session), f"kafka://{address}")
            return Policy(acls, cluster_id(session))
    except RequestRefused as error:
        raise InputError(f"kafka://{address}: {_refusal(error)}") from error
    except ClientError as error:
        raise InputError(f"{without_login(f'kafka://{address}')}: {error}") from error


def _refusal(error: RequestRefused) -> str:
    if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return f"the ACLs cannot be described: {error.code}: {error}"
    return (
        f"the ACLs cannot be described: {error.code}: {error} "
        "(It needs DESCRIBE on the cluster; whether there are any ACLs is not known.)"
    )


def _understood(acls: list[AclBinding], place: str) -> list[AclBinding]:
    """Return ACLs; raises InputError if one has a value that this program does not know."""
    for acl in acls:
        reason = invalid_reason(acl)
        if reason is not None:
            raise InputError(
                f"{place}: an ACL on {acl.resource_name!r} is not understood: {reason}"
            )
    return acls
