"""Reads the ACLs of a cluster, logged in as the user of a Kafka client's properties file."""

from __future__ import annotations

from aclbroker.broker.acl.bindings import AclBinding, invalid_reason
from aclbroker.broker.client.acls import describe_acls
from aclbroker.broker.client.cluster_info import cluster_id
from aclbroker.broker.client.errors import ClientError, RequestRefused
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.broker.policy import Policy
from aclbroker.pipeline.errors import InputError
from aclbroker.protocol.errors import ErrorCode


def described(address: str, command_config: str | None) -> Policy:
    """Return all ACLs of the cluster at HOST:PORT, and the id of the cluster.

    Raises InputError with the reason if they cannot be read, which is never told as a cluster that
    has none.
    """
    try:
        settings = read_settings(command_config)
        with open_session(read_addresses(address), settings) as session:
            return Policy(_acls(session), cluster_id(session))
    except RequestRefused as error:
        raise InputError(f"kafka://{address}: {_refusal(error)}") from error
    except (ClientError, _NotUnderstood) as error:
        raise InputError(f"kafka://{address}: {error}") from error


class _NotUnderstood(Exception):
    """An ACL of the cluster has a value that this program does not know."""


def _refusal(error: RequestRefused) -> str:
    if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return f"the ACLs cannot be described: {error.code}: {error}"
    return (
        f"the ACLs cannot be described: {error.code}: {error} "
        "(It needs DESCRIBE on the cluster; whether there are any ACLs is not known.)"
    )


def _acls(session: Session) -> list[AclBinding]:
    acls = describe_acls(session)
    for acl in acls:
        reason = invalid_reason(acl)
        if reason is not None:
            raise _NotUnderstood(f"an ACL on {acl.resource_name!r} is not understood: {reason}")
    return acls
