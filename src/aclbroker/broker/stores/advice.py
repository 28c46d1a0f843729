"""What went wrong with a store file, in words that say what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from aclbroker.broker.stores.schema import InvalidRow
from aclbroker.broker.stores.store import StoreError, StoreFull, StoreUnavailable

DAMAGED: Final = (
    "the file is damaged: stop the broker and restore it from a backup (aclbroker store restore), "
    "or see what can be kept (aclbroker store check, then repair); until then keep the file "
    "together with its -wal and -shm"
)
EXPORT: Final = (
    "decisions go on with the ACLs in memory, and changes are refused. Export the ACLs "
    "(kafka-acls.sh --list) before you restart the broker"
)
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "free space on its disk; then changes work again",
    sqlite3.SQLITE_IOERR: "check its disk for errors, free space and quotas",
    sqlite3.SQLITE_READONLY: "make it and its directory writable for the broker",
    sqlite3.SQLITE_CANTOPEN: "check that it exists and that the broker may read and write it",
    sqlite3.SQLITE_PERM: "make it and its directory writable for the broker",
    sqlite3.SQLITE_BUSY: "another program holds it: if it is no broker, close that program",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: "it is not an ACL store, or damaged: name another, or restore a backup",
}

_KINDS: Final[Mapping[int, type[StoreError]]] = {
    sqlite3.SQLITE_BUSY: StoreUnavailable,
    sqlite3.SQLITE_FULL: StoreFull,
}


def refuse_damaged(place: object, problems: Sequence[str], done: str) -> None:
    """Raise `StoreError` if a store has problems, which says of it what is not done with it."""
    if problems:
        raise StoreError(
            f"{place} is damaged, and is not {done}: {problems[0]} (aclbroker store check tells "
            "all)"
        )


@contextmanager
def explained(path: Path, verb: str) -> Iterator[None]:
    """Turn what goes wrong in the block into a `StoreError` with the file's path and advice."""
    try:
        yield
    except InvalidRow as error:
        raise StoreError(f"the ACL store {path} holds {error}; {DAMAGED}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        advice = _ADVICE.get(code, DAMAGED)
        kind = _KINDS.get(code, StoreError)
        raise kind(f"cannot {verb} the ACL store {path}: {error}; {advice}") from error
    except OSError as error:
        advice = "check that its directory exists and that the broker may write there"
        text = f"cannot {verb} the ACL store {path}: {error.strerror}; {advice}"
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
        raise kind(text) from error
    except UnicodeError as error:
        raise StoreError(f"cannot {verb} the ACL store {path}: {error}") from error
