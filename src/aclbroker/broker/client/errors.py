"""What goes wrong between a client and a cluster, in the words of Kafka's own client."""

from __future__ import annotations

from typing import Final

from aclbroker.protocol.errors import ErrorCode

_JAVA_PACKAGE: Final = "org.apache.kafka.common.errors."

_JAVA_NAMES: Final[dict[int, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "UnsupportedSaslMechanismException",
    ErrorCode.ILLEGAL_SASL_STATE: "IllegalSaslStateException",
    ErrorCode.UNSUPPORTED_VERSION: "UnsupportedVersionException",
    ErrorCode.INVALID_REQUEST: "InvalidRequestException",
    ErrorCode.POLICY_VIOLATION: "PolicyViolationException",
    ErrorCode.SECURITY_DISABLED: "SecurityDisabledException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "DelegationTokenNotFoundException",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "DelegationTokenOwnerMismatchException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "DelegationTokenExpiredException",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "InvalidPrincipalTypeException",
    ErrorCode.RESOURCE_NOT_FOUND: "ResourceNotFoundException",
    ErrorCode.DUPLICATE_RESOURCE: "DuplicateResourceException",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "UnacceptableCredentialException",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "MismatchedEndpointTypeException",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "UnsupportedEndpointTypeException",
}
"""Kafka's classes of the errors that this program's requests are answered with."""

_TEXTS: Final[dict[int, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request."
    ),
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.SECURITY_DISABLED: "Security features are disabled.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SASL Authentication failed.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
        "delegation token authenticated channels."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: ("The request was sent to an endpoint of the wrong type."),
}
"""What Kafka's client says where an answer has a code alone."""


class ClientError(Exception):
    """A request to a cluster came to nothing.

    The text has no secret. ``java_name`` is the class with which Kafka's client tells the same.
    """

    java_name = f"{_JAVA_PACKAGE}TimeoutException"


class ClientConfigError(ClientError):
    """The settings of the client cannot be used; ``problems`` has a line for each that is wrong."""

    java_name = "org.apache.kafka.common.KafkaException"

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Unreachable(ClientError):
    """No broker could be reached, or the one that was did not answer."""


class TlsFailed(ClientError):
    """The TLS handshake failed: the broker's certificate was not trusted, or the client's."""

    java_name = f"{_JAVA_PACKAGE}SslAuthenticationException"


class AuthenticationRefused(ClientError):
    """The broker did not accept the credentials, or could not prove who it is itself."""

    java_name = f"{_JAVA_PACKAGE}SaslAuthenticationException"


class RequestRefused(ClientError):
    """The broker answered with an error code."""

    def __init__(self, code: int, message: str | None) -> None:
        self.code = code
        self.java_name = _JAVA_PACKAGE + _JAVA_NAMES.get(code, "UnknownServerException")
        super().__init__(message or _TEXTS.get(code) or code_name(code))


def code_name(code: int) -> str:
    """Return Kafka's name of an error code, or the number where this program knows none."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
