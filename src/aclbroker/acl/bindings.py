"""ACL bindings and filters: what an ACL says, and how a filter selects ACLs.

The numbers are Kafka's wire codes (KIP-140, KIP-290, KIP-373, KIP-939). Names are compared as code
points, case-sensitively.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import product
from typing import Final, NamedTuple, Self

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

WILDCARD: Final = "*"
"""As the name of a LITERAL pattern: any resource. As a host: any host."""

WILDCARD_PRINCIPAL: Final = "User:*"
"""The principal of an ACL that holds for every principal."""


class _WireEnum(IntEnum):
    # Enum's own is Python code, which would run several times in each decision.
    __hash__ = int.__hash__

    @classmethod
    def from_code(cls, code: int) -> Self:
        """Return the member of a wire code; UNKNOWN (0) for a code that has none."""
        try:
            return cls(code)
        except ValueError:
            return cls(0)


class ResourceType(_WireEnum):
    """The kind of resource; ANY occurs in filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_WireEnum):
    """How a pattern's name relates to resources' names (KIP-290); ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_WireEnum):
    """What is done to a resource; ALL stands for every operation, ANY occurs in filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(_WireEnum):
    """Whether an ACL denies or allows; ANY occurs in filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


# Members by a name of their own, for what is done for every ACL and every decision: Python takes
# longer to find a member in its class than an ACL in an index.
LITERAL: Final = PatternType.LITERAL
PREFIXED: Final = PatternType.PREFIXED
MATCH: Final = PatternType.MATCH
ANY_PATTERN: Final = PatternType.ANY
ANY_TYPE: Final = ResourceType.ANY
ANY_OPERATION: Final = AclOperation.ANY
ANY_PERMISSION: Final = AclPermission.ANY
ALLOW: Final = AclPermission.ALLOW
DENY: Final = AclPermission.DENY


class ResourcePattern(NamedTuple):
    """What an ACL is about: the resource of a name, or all whose names begin with it (KIP-290)."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str


class AclBinding(NamedTuple):
    """One ACL: a resource pattern, and what a principal from a host may or must not do to it.

    ``principal`` is ``Type:name``. ``host`` is an address, ``*``, a subnet, or any other text,
    which then matches no peer.
    """

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def pattern(self) -> ResourcePattern:
        """The resource pattern."""
        return ResourcePattern(self.resource_type, self.pattern_type, self.resource_name)


class AclFilter(NamedTuple):
    """Selects bindings: every given field must match; ANY and None match anything.

    With pattern type MATCH the name is a resource's, and every pattern that applies to it is
    selected: the LITERAL of that name, the LITERAL ``*``, and the PREFIXED ones it begins with.
    With ANY the name is a pattern's, of either type (KIP-290). A principal ``User:*`` selects only
    the ACLs of that principal, and a host only the ACLs whose host is written the same.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @property
    def has_unknown(self) -> bool:
        """Whether a field is UNKNOWN, as if sent by a newer client: what it selects is unknown."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    def matches(self, binding: AclBinding) -> bool:
        """Tell whether the filter selects the binding."""
        return (
            self.resource_type in (ANY_TYPE, binding.resource_type)
            and self._matches_pattern(binding.pattern_type, binding.resource_name)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (ANY_OPERATION, binding.operation)
            and self.permission in (ANY_PERMISSION, binding.permission)
        )

    def _matches_pattern(self, pattern_type: PatternType, name: str) -> bool:
        if self.pattern_type not in (ANY_PATTERN, MATCH, pattern_type):
            return False
        if self.resource_name is None or self.resource_name == name:
            return True
        if self.pattern_type is not MATCH:
            return False
        if pattern_type is LITERAL:
            return name == WILDCARD
        return self.resource_name.startswith(name)


_CONCRETE_TYPES: Final = tuple(t for t in ResourceType if t > ResourceType.ANY)
_CONCRETE_PATTERNS: Final = (PatternType.LITERAL, PatternType.PREFIXED)
_CONCRETE_OPERATIONS: Final = tuple(o for o in AclOperation if o > AclOperation.ANY)
_CONCRETE_PERMISSIONS: Final = (AclPermission.DENY, AclPermission.ALLOW)

_PLAIN_CODES: Final = frozenset(
    product(
        [each for each in _CONCRETE_TYPES if each is not ResourceType.CLUSTER],
        _CONCRETE_PATTERNS,
        _CONCRETE_OPERATIONS,
        _CONCRETE_PERMISSIONS,
    )
)
"""The codes of a binding that is valid whatever its name, if there is one: all but CLUSTER's."""


def invalid_reason(binding: AclBinding) -> str | None:
    """Tell why a binding must not be created, naming the field and what is allowed; None if it may.

    Refused is what a 4.3 broker refuses. It accepts more than one may expect, and so does this: an
    operation that the resource type does not have, a host that is no address, names of any length
    and alphabet, PREFIXED ``*``, the principal ``:``.
    """
    resource_type, name, pattern_type, principal, host, operation, permission = binding
    # Nearly every binding passes here, at a tenth of the cost of looking for what is wrong with it.
    if (
        (resource_type, pattern_type, operation, permission) in _PLAIN_CODES
        and name
        and ":" in principal
        and name.isascii()
        and principal.isascii()
        and host.isascii()
    ):
        return None
    return _reason(binding)


def _reason(binding: AclBinding) -> str | None:
    return (
        _not_among("resource type", binding.resource_type, _CONCRETE_TYPES)
        or _not_among("pattern type", binding.pattern_type, _CONCRETE_PATTERNS)
        or _not_among("operation", binding.operation, _CONCRETE_OPERATIONS)
        or _not_among("permission", binding.permission, _CONCRETE_PERMISSIONS)
        or _invalid_name(binding)
        or _invalid_principal(binding.principal)
        or _invalid_text(binding)
    )


def _not_among(field: str, value: IntEnum, allowed: tuple[IntEnum, ...]) -> str | None:
    if value in allowed:
        return None
    names = ", ".join(member.name for member in allowed)
    return f"The {field} of a new ACL must be one of {names}; {value.name} is not."


def _invalid_name(binding: AclBinding) -> str | None:
    if not binding.resource_name:
        return "The resource name of a new ACL must not be empty."
    if binding.resource_type is ResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        return f"The resource name of a CLUSTER ACL must be {CLUSTER_NAME}."
    return None


def _invalid_principal(principal: str) -> str | None:
    if ":" in principal:
        return None
    return (
        "The principal of a new ACL must be written Type:name, such as User:alice; it has no colon."
    )


def _invalid_text(binding: AclBinding) -> str | None:
    # No client can send these, but a caller in the same process can, and no store could save them.
    for field in ("resource_name", "principal", "host"):
        text: str = getattr(binding, field)
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            field = field.replace("_", " ")
            return f"The {field} of a new ACL must be Unicode without lone surrogates."
    return None
