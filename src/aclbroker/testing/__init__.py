"""A broker for tests: within the process of the tests, with ACLs, and an answer to each denial.

`aclbroker.testing.AclBroker` is a running broker; the pytest plugin gives it out as the fixture
``acl_broker``. docs/testing.md tells how both are used. A name is imported when it is first used,
since pytest loads the plugin in each of its runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclbroker.testing.acl_broker import AclBroker
    from aclbroker.testing.decisions import Denial

__all__ = ["AclBroker", "Denial"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from aclbroker.testing import acl_broker

        return getattr(acl_broker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
