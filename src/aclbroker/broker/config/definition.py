"""What a setting is: a row of the tables in `definitions` and `login_definitions`."""

from enum import Enum
from typing import NamedTuple

from aclbroker.broker.config.values import ValueType


class Scope(Enum):
    """Whether a setting may be written alone, or with the prefix `listener.name.<listener>.`.

    One of a CLUSTER has an id in its name, for which `<id>` stands.
    """

    BROKER = "broker"
    EITHER = "broker or listener"
    LISTENER = "listener"
    CLUSTER = "cluster"


class Definition(NamedTuple):
    """One setting. `field` is its field of `Config`, "" if it has none of its own.

    `default` is text that `type` parses; None is a default that depends on other things, which
    `default_doc` describes. A `secret` is never shown.
    """

    name: str
    field: str
    type: ValueType
    default: str | None
    doc: str
    scope: Scope = Scope.BROKER
    default_doc: str = ""
    secret: bool = False
