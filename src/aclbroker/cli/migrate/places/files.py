"""Files of ACLs as places: ``file:PATH``, in the format that the name ends with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import PolicyError
from aclbroker.acl.files.reading import Found
from aclbroker.cli.acl_files import acls_of_file
from aclbroker.cli.migrate.places.formats import FORMATS, Format
from aclbroker.cli.migrate.places.place import Contents, Place, PlaceError
from aclbroker.cli.migrate.places.stamps import stamp_of

_NEW_FILE_MODE: Final = 0o666


class FilePlace(Place):
    """A file, which is written as a whole: whoever reads it sees all of a change or nothing."""

    at_once = None
    is_edited = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        path = url.removeprefix("file:")
        if path.startswith("//"):
            # As RFC 8089 has it; nobody else's machine can be read here.
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost") or not slash:
                raise PlaceError(f"{url}: expected file:PATH or file:///PATH, without a host")
            path = unquote(f"/{rest}")
        found = FORMATS.get(Path(path).suffix.lower())
        # What a link names is written, and the link stays.
        self._path = Path(os.path.realpath(path))
        if found is None and not self._path.exists():
            raise PlaceError(f"{url}: the name of a file of ACLs ends with {', '.join(FORMATS)}")
        self._format: Format | None = found

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return the ACLs of the file."""
        found = self._read(may_be_new=may_be_new)
        return Contents([] if found is None else list(dict.fromkeys(found.policy.acls)))

    def stamp(self) -> Hashable | None:
        """Return what tells files apart; None while the file is written."""
        return stamp_of(self._path)

    def refusal(self, acl: AclBinding) -> str | None:
        """Tell why the format cannot say an ACL."""
        return super().refusal(acl) or self._writable_format().refusal(acl)

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        """Put a new file in the place of the old one."""
        written = self._writable_format()
        found = self._read(may_be_new=True)
        if found is not None and found.form is not written.form:
            raise PlaceError(
                f"{self.url}: this is {found.form.name}, and {written.form.name} would take its "
                "place: name another file"
            )
        acls, cluster = ([], None) if found is None else found.policy
        outcome = sorted({*acls, *added} - set(removed))
        text = "".join(written.text(outcome, cluster))
        try:
            _replace(self._path, text.encode())
        except OSError as error:
            raise PlaceError(f"{self.url}: {error.strerror or error}") from error
        return {}

    def _writable_format(self) -> Format:
        if self._format is None:
            raise PlaceError(
                f"{self.url}: the name of a file that is written ends with {', '.join(FORMATS)}"
            )
        return self._format

    def _read(self, *, may_be_new: bool) -> Found | None:
        """Return the ACLs of the file; None if it is new."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError as error:
            if may_be_new and self._path.parent.is_dir():
                return None
            raise PlaceError(f"{self.url}: {error.strerror}") from error
        except OSError as error:
            raise PlaceError(f"{self.url}: {error.strerror or error}") from error
        if not content.strip():
            if may_be_new:
                return None
            raise PlaceError(f"{self.url}: it is empty")
        try:
            return acls_of_file(content, str(self._path))
        except PolicyError as error:
            raise PlaceError(str(error)) from error


def _replace(path: Path, content: bytes) -> None:
    """Write a file that nobody sees half written, with the rights of the one that was there.

    It stays that one's owner's, too, if this process may give files away.
    """
    try:
        before = path.stat()
    except FileNotFoundError:
        before = None
    descriptor, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if before is not None:
                with suppress(PermissionError):
                    os.fchown(descriptor, before.st_uid, before.st_gid)
            mode = _NEW_FILE_MODE & ~_umask() if before is None else before.st_mode & 0o7777
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
