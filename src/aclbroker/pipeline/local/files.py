"""Where local files are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit


def is_url(place: str) -> bool:
    """Tell whether a place is not on a file system of this machine."""
    return "://" in place and not place.startswith("file://")


def local_path(place: str) -> Path:
    """Return the path of a place on this machine, which may be written as a URL."""
    return Path(unquote(urlsplit(place).path)) if place.startswith("file:") else Path(place)


def remove_local(place: str) -> None:
    """Remove a file, or a directory with all in it, if there is one."""
    path = local_path(place)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def files_below(directory: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is no directory below a directory, in no order, as it is listed.

    As for Spark that is without names that begin with ``.`` or ``_``, and through links, but each
    directory once. A link to nothing is among it, which Spark passes over. A directory that
    vanishes meanwhile is passed over. Raises OSError for one that cannot be listed.
    """
    waiting, seen = [directory], set[str]()
    while waiting:
        place = waiting.pop()
        # A link may lead around in a circle.
        if (real := os.path.realpath(place)) in seen:
            continue
        seen.add(real)
        try:
            entries = os.scandir(place)
        except FileNotFoundError:
            continue
        with entries:
            for entry in entries:
                if entry.name[0] in "._":
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                else:
                    yield entry
