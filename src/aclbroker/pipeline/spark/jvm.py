"""The options with which the JVM of a session on this machine is soon ready.

Most of its time in a job goes into loading Spark's classes, and into compiling them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from aclbroker.pipeline.spark.java import Java

_COMPILE_LATER: Final = (
    # Ten times HotSpot's own. Otherwise its optimizing compiler has half of two cores for itself
    # while Python workers do the work. What really runs long is compiled all the same.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_CREATES_ARCHIVES: Final = 19
"""The first Java that keeps such an archive by itself (JEP 310 and 350, JDK-8261455)."""


LOG_SETTING: Final = "log4j2.configurationFile"
"""The property that names the configuration of the JVM's log; without it Spark has its own."""

_LOG: Final = Path(__file__).resolve().with_name("log4j2.properties")

_OWN_CLASSES: Final = "lib/server/classes.jsa"
"""HotSpot's archive of Java's own classes, beside which alone there can be another one."""


_KEPT: Final = 4
"""So many archives are kept, of some 190 MB each."""


def installation(version: str, home: Path) -> str:
    """Return a name for a Spark of a version at its home.

    Of another one's classes, or of those before they were installed anew, the JVM uses none.
    """
    jars = home / "jars"
    try:
        made = jars.stat().st_mtime_ns
    except OSError:
        made = 0
    return f"{version}-{crc32(f'{jars} {made}'.encode()):08x}"


def jvm_options(java: Java | None, spark: str, environment: Mapping[str, str]) -> str:
    """Return the options of the JVM. ``spark``: the name of the `installation`.

    The classes that a session loads are archived in the user's cache (``$XDG_CACHE_HOME``, or
    ``~/.cache``) when it ends, and the next one starts sooner. A JVM takes no notice of an archive
    that is not its own.
    """
    options = ["-XX:+IgnoreUnrecognizedVMOptions", *_COMPILE_LATER]
    if _can_be_named(_LOG):
        options.append(f"-D{LOG_SETTING}={_LOG.as_uri()}")
    place = _cache(environment)
    if place is not None and java is not None and (java.home / _OWN_CLASSES).exists():
        archive = place / f"spark-{spark}-java-{java.version}.jsa"
        _keep_used(place, archive)
        # No warning if the archive cannot be used.
        options += ["-Xlog:cds*=error", *_archived(archive, java.major)]
    return " ".join(options)


def _archived(archive: Path, java: int) -> list[str]:
    if java >= _CREATES_ARCHIVES:
        return ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}"]
    if _is_whole(archive):
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:ArchiveClassesAtExit={archive}"]


def _keep_used(place: Path, archive: Path) -> None:
    """Remove all archives but those that were used last, and the one to be used now."""
    found = []
    with suppress(OSError):
        os.utime(archive)
    for each in place.glob("spark-*.jsa"):
        with suppress(OSError):
            found.append((each.stat().st_mtime, each))
    for _, each in sorted(found)[:-_KEPT]:
        with suppress(OSError):
            each.unlink()


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            # The JVM writes the beginning last.
            return any(file.read(4))
    except OSError:
        return False


def _can_be_named(path: Path) -> bool:
    return not any(each.isspace() or each in "\"'\\" for each in str(path))


def _cache(environment: Mapping[str, str]) -> Path | None:
    """Return the directory, made if need be; None if none can be had, or options cannot name it."""
    home = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = Path(home, "aclbroker")
    if not place.is_absolute() or not _can_be_named(place):
        return None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    # Classes are code: what somebody else can put there is not run.
    is_ours = place.stat().st_uid == os.geteuid()
    return place if is_ours and os.access(place, os.W_OK) else None
