"""The features (KIP-584) of a cluster in memory, at the levels that a Kafka 4.3.0 begins with."""

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.backends.backend import FeatureRange

FEATURES: Final[Mapping[str, FeatureRange]] = {
    "group.version": FeatureRange(0, 1, 1),
    "metadata.version": FeatureRange(7, 30, 30),
    "share.version": FeatureRange(0, 1, 1),
    "transaction.version": FeatureRange(0, 2, 2),
}
"""The features that clients use.

Java's producer learns from transaction.version that it can skip AddPartitionsToTxn (KIP-890). Its
share consumer learns from share.version that share groups exist (KIP-932). Kafka's other features
concern brokers, or streams groups, which are not supported.
"""
