"""The ACLs of a store file, read while a broker may use it; nothing is changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, inspection, schema
from aclbroker.broker.stores.advice import explained
from aclbroker.broker.stores.store import StoreError


def read_acls(path: Path) -> tuple[list[AclBinding], str]:
    """Return the ACLs as the last transaction left them, each once, and the id of the cluster.

    All that is read is checked. Raises `StoreError` if there is no file, if it is of an older
    version, which a broker must open first, or if it is damaged.
    """
    if not path.exists():
        raise StoreError(f"there is no ACL store {path}")
    with explained(path, "read"), inspection.read_transaction(path) as connection:
        version = inspection.check_kind(connection, path)
        if version < schema.SCHEMA_VERSION:
            raise StoreError(f"the ACL store {path} is of an older aclbroker; start a broker once")
        cluster_id, sealed = inspection.check_tables(connection)
        _, gone = changes.removals(connection)
        found: dict[AclBinding, None] = {}
        with closing(changes.load(connection, sealed, gone)) as chunks:
            for chunk in chunks:
                found.update(dict.fromkeys(chunk))
        return list(found), cluster_id
