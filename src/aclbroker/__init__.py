"""Kafka's authorization plane: stores ACLs and decides by them, without a JVM.

The names in ``__all__`` are the public interface and stay compatible from release to release; all
other names are private. examples/ has a custom authorizer and a custom principal builder. A name's
module is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aclbroker.acl.authorizer import (
        AclCreateResult,
        AclDeleteResult,
        AclError,
        Action,
        Authorizer,
        Decision,
        RequestContext,
        Rule,
        RuleKind,
        Session,
    )
    from aclbroker.acl.bindings import (
        AclBinding,
        AclFilter,
        AclOperation,
        AclPermission,
        PatternType,
        ResourcePattern,
        ResourceType,
    )
    from aclbroker.broker.auth.principals import (
        ANONYMOUS,
        AuthenticationContext,
        PrincipalBuilder,
    )
    from aclbroker.broker.auth.sasl.mechanism import Identity
    from aclbroker.broker.authorizer.standard import StandardAuthorizer
    from aclbroker.broker.stores.store import (
        AclStore,
        Origin,
        StoreChange,
        StoreError,
        StoreReset,
        StoreStatus,
        StoreUnavailable,
    )

_MODULES: Final = {
    "acl.authorizer": (
        "AclCreateResult",
        "AclDeleteResult",
        "AclError",
        "Action",
        "Authorizer",
        "Decision",
        "RequestContext",
        "Rule",
        "RuleKind",
        "Session",
    ),
    "acl.bindings": (
        "AclBinding",
        "AclFilter",
        "AclOperation",
        "AclPermission",
        "PatternType",
        "ResourcePattern",
        "ResourceType",
    ),
    "broker.auth.principals": ("ANONYMOUS", "AuthenticationContext", "PrincipalBuilder"),
    "broker.auth.sasl.mechanism": ("Identity",),
    "broker.authorizer.standard": ("StandardAuthorizer",),
    "broker.stores.store": (
        "AclStore",
        "Origin",
        "StoreChange",
        "StoreError",
        "StoreReset",
        "StoreStatus",
        "StoreUnavailable",
    ),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ANONYMOUS",
    "AclBinding",
    "AclCreateResult",
    "AclDeleteResult",
    "AclError",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "AclStore",
    "Action",
    "AuthenticationContext",
    "Authorizer",
    "Decision",
    "Identity",
    "Origin",
    "PatternType",
    "PrincipalBuilder",
    "RequestContext",
    "ResourcePattern",
    "ResourceType",
    "Rule",
    "RuleKind",
    "Session",
    "StandardAuthorizer",
    "StoreChange",
    "StoreError",
    "StoreReset",
    "StoreStatus",
    "StoreUnavailable",
]


def __getattr__(name: str) -> Any:
    # Modules are loaded late for two reasons: the command line starts faster, and the workers of a
    # Spark cluster import the pipeline through this package with only pyarrow installed.
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'aclbroker' has no attribute {name!r}")
    return getattr(import_module(f"aclbroker.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
