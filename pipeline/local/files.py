"""Where local files are."""

from __future__ import annotations

import shutil
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
