"""On which kind of file system a file is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_NETWORK: Final = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs", "virtiofs"),
    )
)
_LOCAL_FUSE: Final = frozenset(("fuse.fuse-overlayfs", "fuse.overlayfs"))


def network_file_system(path: Path) -> str | None:
    """Return the type of the file system of an absolute path if other machines may use it, too.

    None if it is a local one, or if this system does not tell: only Linux does.
    """
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, found = -1, ""
    for line in lines:
        # Proc(5): the mount point is the fifth field, the type the first one behind " - ".
        place = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4])
        # Of two on one place the later one is seen.
        if path.is_relative_to(place) and len(place) >= best:
            best, found = len(place), line.partition(" - ")[2].split(" ")[0]
    is_network = found in _NETWORK or (found.startswith("fuse.") and found not in _LOCAL_FUSE)
    return found if is_network else None
