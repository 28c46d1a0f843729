"""Reads the ACLs of a broker, logged in as the user of a Kafka client's properties file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aclbroker.broker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.broker.client.blocking import ConnectionClosed, NoAnswer
from aclbroker.broker.client.command_config import (
    CommandConfigError,
    LoginError,
    logged_in,
    read_login,
)
from aclbroker.broker.conformance.cluster import Cluster, SuiteError
from aclbroker.broker.policy import Policy
from aclbroker.pipeline.errors import InputError
from aclbroker.protocol.messages import ApiKey, describe_acls, metadata
from aclbroker.protocol.primitives import ProtocolError

_ANSWERED_WITHIN: Final = 60.0
_CLIENT_ID: Final = "aclbroker"
_ANY: Final = 1


def described(address: str, command_config: str | None) -> Policy:
    """Return all ACLs of the cluster at HOST:PORT, and the id of the cluster.

    Raises InputError with the reason if they cannot be read.
    """
    try:
        login = read_login(address, command_config)
        with logged_in(login, _ANSWERED_WITHIN, _CLIENT_ID) as client:
            cluster = Cluster(client)
            return Policy(list(_acls(cluster)), _cluster_id(cluster))
    except (ConnectionClosed, NoAnswer, ProtocolError) as error:
        raise InputError(f"kafka://{address}: no answer ({type(error).__name__})") from error
    except (CommandConfigError, LoginError, SuiteError, OSError) as error:
        raise InputError(f"kafka://{address}: {error}") from error


def _acls(cluster: Cluster) -> Iterator[AclBinding]:
    request = describe_acls.DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY)
    answer = cluster.ask(ApiKey.DESCRIBE_ACLS, request, 3)
    if answer.error_code:
        raise SuiteError(
            f"the ACLs cannot be described: {answer.error_code}: {answer.error_message}"
        )
    for resource in answer.resources:
        for acl in resource.acls:
            yield _binding(resource, acl)


def _binding(resource: Any, acl: Any) -> AclBinding:
    binding = AclBinding(
        ResourceType.from_code(resource.resource_type),
        resource.resource_name,
        PatternType.from_code(resource.pattern_type),
        acl.principal,
        acl.host,
        AclOperation.from_code(acl.operation),
        AclPermission.from_code(acl.permission_type),
    )
    reason = invalid_reason(binding)
    if reason is not None:
        raise SuiteError(f"an ACL on {resource.resource_name!r} is not understood: {reason}")
    return binding


def _cluster_id(cluster: Cluster) -> str | None:
    answer = cluster.ask(ApiKey.METADATA, metadata.MetadataRequest(topics=[]), 12)
    found: str | None = answer.cluster_id
    return found
