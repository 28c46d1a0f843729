"""Places of ACLs by their URLs: a class and a line in `_PLACES` each."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from aclbroker.cli.migrate.places.place import Contents, Place, PlaceError

__all__ = ["Contents", "Place", "PlaceError", "forms", "open_place", "takes_config"]


class _Kind(NamedTuple):
    """A kind of places: the form of its URLs, which begins with the scheme, and its class.

    ``takes_config`` tells that the class also takes a Kafka client's properties file.
    """

    scheme: str
    rest: str
    module: str
    name: str
    takes_config: bool = False
    only_source: bool = False


_PLACES: Final = (
    _Kind("file:", "PATH.yaml, .yml, .json, .csv or .txt", "files", "FilePlace"),
    _Kind("sqlite:///", "PATH", "stores", "SqlitePlace"),
    _Kind(
        "zookeeper://",
        "HOST:PORT[,HOST:PORT][/CHROOT]",
        "stores",
        "SharedStorePlace",
        takes_config=True,
    ),
    _Kind(
        "kafka://", "HOST:PORT[,HOST:PORT]/TOPIC", "stores", "SharedStorePlace", takes_config=True
    ),
    _Kind("kafka+acls://", "HOST:PORT[,HOST:PORT]", "cluster", "ClusterPlace", takes_config=True),
    _Kind("mds+https://", "HOST:PORT/CLUSTER_ID", "mds", "MdsPlace", takes_config=True),
    _Kind("mds+http://", "HOST:PORT/CLUSTER_ID", "mds", "MdsPlace", takes_config=True),
    _Kind("kraft:///", "DIR", "metadata_log", "MetadataLogPlace", only_source=True),
)


def open_place(url: str, config: str | None = None, *, is_target: bool = False) -> Place:
    """Return the place that a URL names; nothing is read yet.

    ``config`` is a Kafka client's properties file. Raises `PlaceError` for any other URL, with all
    that there are.
    """
    kind = _kind(url)
    if kind is None:
        # Not the whole URL: what stands behind a scheme that is not known may be a password.
        shown = url.partition(":")[0] + ":" if ":" in url else url
        raise PlaceError(f"{shown!r} is no place of ACLs; expected {forms(is_target=is_target)}")
    if is_target and kind.only_source:
        raise PlaceError(f"{url}: it can only be read; expected {forms(is_target=True)}")
    made = getattr(import_module(f"{__name__}.{kind.module}"), kind.name)
    place: Place = made(url, config) if kind.takes_config else made(url)
    return place


def takes_config(url: str) -> bool:
    """Tell whether a place is reached with a Kafka client's properties."""
    kind = _kind(url)
    return kind is not None and kind.takes_config


def forms(*, is_target: bool = False) -> str:
    """Return the forms of all URLs, or of those of targets."""
    kinds = [each for each in _PLACES if not (is_target and each.only_source)]
    return ", ".join(each.scheme + each.rest for each in kinds[:-1]) + (
        f" or {kinds[-1].scheme}{kinds[-1].rest}"
    )


def _kind(url: str) -> _Kind | None:
    found = (each for each in _PLACES if url.startswith(each.scheme) and url != each.scheme)
    return next(found, None)
