"""Client metrics (KIP-714), answered like a Kafka broker without a telemetry receiver.

Such a broker does not advertise the two keys, but it answers them: it subscribes to no metrics and
drops whatever a client pushes. Some checks of Kafka are left out, because this broker keeps no
state of clients and does not look into their metrics: Kafka answers 89 to a client that asks or
pushes too early, 42 to a push after the terminating one, and 87 if it cannot decompress the
metrics.
"""

from __future__ import annotations

import uuid
from typing import Final

from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from aclbroker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from aclbroker.protocol.primitives import ZERO_UUID

_ONE_UUID: Final = bytes(15) + b"\1"
_NO_CLIENT: Final = frozenset((ZERO_UUID, _ONE_UUID))
"""The ids that Kafka reserves for itself (Uuid.RESERVED)."""
_PUSH_INTERVAL_MS: Final = 300_000
_MAX_BYTES: Final = 1 << 20
_ZSTD, _LZ4, _GZIP, _SNAPPY = 4, 3, 1, 2
_COMPRESSIONS: Final = range(5)
_NO_METRICS_CRC: Final = -725132322
"""CRC32C of the text "[]300000": no metrics, and the push interval in milliseconds."""


def get_subscriptions(
    _backend: DeclaredBackend, _rights: RequestRights, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Answer with a subscription to no metrics; a client without an id gets a random one."""
    client_id = request.client_instance_id
    if client_id == ZERO_UUID:
        client_id = uuid.uuid4().bytes
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client_id,
        subscription_id=_subscription_id(client_id),
        accepted_compression_types=[_ZSTD, _LZ4, _GZIP, _SNAPPY],
        push_interval_ms=_PUSH_INTERVAL_MS,
        telemetry_max_bytes=_MAX_BYTES,
        delta_temporality=True,
        requested_metrics=[],
    )


def push(
    _backend: DeclaredBackend, _rights: RequestRights, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    """Drop the metrics, after the checks of Kafka's ClientMetricsManager in the same order."""
    return PushTelemetryResponse(error_code=_push_error(request))


def _push_error(request: PushTelemetryRequest) -> ErrorCode:
    if request.client_instance_id in _NO_CLIENT:
        return ErrorCode.INVALID_REQUEST
    if request.subscription_id != _subscription_id(request.client_instance_id):
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if request.compression_type not in _COMPRESSIONS:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(request.metrics) > _MAX_BYTES:
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE


def _subscription_id(client_id: bytes) -> int:
    """Return the id of a client's subscription to no metrics, computed as Kafka does.

    It is the checksum of the subscription XOR Java's hash code of the client's UUID.
    """
    number = _NO_METRICS_CRC
    for start in range(0, 16, 4):
        number ^= int.from_bytes(client_id[start : start + 4], signed=True)
    return number
