"""Kafka's authorization plane: who may do what, decided and kept without a JVM.

These names are the public interface; they keep their meaning from release to release. Whatever
else the package holds is private. examples/ has an authorizer and a principal builder
of one's own. Nothing is imported until it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aclbroker.broker.acl.authorizer import (
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
    from aclbroker.broker.acl.bindings import (
        AclBinding,
        AclFilter,
        AclOperation,
        AclPermission,
        PatternType,
        ResourceType,
    )
    from aclbroker.broker.auth.principals import (
        ANONYMOUS,
        AuthenticationContext,
        PrincipalBuilder,
    )
    from aclbroker.broker.auth.sasl.mechanism import Identity
    from aclbroker.broker.authorizer.standard import StandardAuthorizer
    from aclbroker.broker.stores.store import AclStore, StoreError

_MODULES: Final = {
    "broker.acl.authorizer": (
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
    "broker.acl.bindings": (
        "AclBinding",
        "AclFilter",
        "AclOperation",
        "AclPermission",
        "PatternType",
        "ResourceType",
    ),
    "broker.auth.principals": ("ANONYMOUS", "AuthenticationContext", "PrincipalBuilder"),
    "broker.auth.sasl.mechanism": ("Identity",),
    "broker.authorizer.standard": ("StandardAuthorizer",),
    "broker.stores.store": ("AclStore", "StoreError"),
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
    "PatternType",
    "PrincipalBuilder",
    "RequestContext",
    "ResourceType",
    "Rule",
    "RuleKind",
    "Session",
    "StandardAuthorizer",
    "StoreError",
]


def __getattr__(name: str) -> Any:
    # Workers of a Spark cluster import the pipeline through this package with pyarrow alone, and
    # the command line starts faster, if a name's module is loaded when the name is first used.
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'aclbroker' has no attribute {name!r}")
    return getattr(import_module(f"aclbroker.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
