"""Looks at the inputs before Spark starts, which takes seconds: what is no log is told at once."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.errors import LogError
from aclbroker.pipeline.ingest.columns import Columns
from aclbroker.pipeline.local.files import files_below

_MOST_FILES: Final = 1000
"""How many files are looked into; of more, only whether there are any."""

_LEDGER: Final = "_checkpoints/ledger.json"
_PATTERN_SIGN: Final = re.compile(r"[{}\[\]*?\\]")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 80
_DELTA: Final = "a Delta table, of Spark's connector io.delta:delta-spark"
_ICEBERG: Final = "an Iceberg table, of Spark's connector org.apache.iceberg:iceberg-spark-runtime"


class _Looked(NamedTuple):
    """What a look at the beginning of a file tells.

    ``form``: that of a line of it, "" if none of them is an event, or in any other way part of such
    a log. ``is_whole``: there is no more of it. ``first`` is its first line.
    """

    path: str
    form: str
    is_whole: bool
    first: str


def check_inputs(options: AuditOptions) -> None:
    """Raise LogError for an input that cannot be read, or if all are empty, or none is a log.

    Also if none of the files has the form, or the pattern, that the options name. Inputs at URLs
    are not looked at, and tables that the job ``ingest`` wrote only so far as that they are some.
    Where that job goes on with a log, this may be empty now, since it was rotated.
    """
    if options.job == "ingest" and Path(options.output, _LEDGER).exists():
        return
    is_log, most = options.columns is None, _MOST_FILES + 1
    found = [
        None if "://" in name else files_of(name, most, is_log=is_log) for name in options.inputs
    ]
    files = [path for each in found if each is not None for path in each]
    if options.columns is not None:
        with suppress(ImportError):
            _check_columns(options, options.columns, files, is_all=None not in found)
        return
    with suppress(ImportError):  # that Spark's packages are missing is told when it is to start
        looked = [each for path in files[:_MOST_FILES] if (each := _look(path, options))]
        if None in found or len(files) > _MOST_FILES:
            return
        name = " ".join(options.inputs)
        if not looked:
            raise LogError(f"--input {name}: nothing is in it")
        _check_forms(name, looked, options)


def files_of(name: str, most: int | None = None, *, is_log: bool = True) -> list[str] | None:
    """Return the files of an input in order, None if it is for Spark to find them.

    Of a directory no more than ``most`` are looked for. ``is_log``: it should be a log, and no
    table that somebody else wrote. Raises LogError if it is not, or if there is none.
    """
    path = Path(name)
    if not path.exists():
        if path.is_symlink() or not _PATTERN_SIGN.search(name):
            raise LogError(f"--input {name}: there is no such file or directory")
        if "{" in name or "\\" in name:
            return None
        found = sorted(glob.glob(name))
        if not found:
            raise LogError(f"--input {name}: no file has such a name")
        lists = [files_of(each, most, is_log=is_log) for each in found]
        return [each for one in lists if one is not None for each in one]
    if path.is_file():
        return [name]
    if _is_tables(path, name, is_log=is_log):
        return None
    return _below(path, most)


def _is_tables(path: Path, name: str, *, is_log: bool) -> bool:
    """Tell whether a directory is a table that Spark reads, or has tables of the job ``ingest``.

    Raises LogError if it is one, and a log should be there; or the other way round.
    """
    if (path / "_checkpoints").is_dir():
        if is_log:
            return True
        raise LogError(f"--input {name}: tables of the job ingest need no --columns")
    is_delta, metadata = (path / "_delta_log").is_dir(), path / "metadata"
    if not is_delta and not any(metadata.glob("*.metadata.json")):
        return False
    if is_log:
        what = _DELTA if is_delta else _ICEBERG
        raise LogError(
            f"--input {name}: this is {what}, and no log: name its columns with --columns"
        )
    return True


def _below(path: Path, most: int | None) -> list[str]:
    """Return the files below a directory in order, no more than ``most`` of them."""
    try:
        return sorted(each.path for each in islice(files_below(str(path)), most))
    except OSError as error:
        where = f"{error.filename} cannot be read: {error.strerror}"
        raise LogError(f"--input {path}: {where}") from error


def _check_columns(
    options: AuditOptions, columns: Columns, files: Sequence[str], *, is_all: bool
) -> None:
    """Look whether files are Parquet with these columns, and have any rows."""
    from aclbroker.pipeline.ingest.foreign_files import rows_in_file

    rows = 0
    for path in files[:_MOST_FILES]:
        try:
            rows += rows_in_file(path, columns)
        except ValueError as error:
            raise LogError(f"{path}: {error}") from error
        except OSError as error:
            raise LogError(f"{path} cannot be read: {error.strerror or error}") from error
    if not rows and is_all and len(files) <= _MOST_FILES:
        raise LogError(f"--input {' '.join(options.inputs)}: nothing is in it")


def _look(path: str, options: AuditOptions) -> _Looked | None:
    """Look into a file; None if there is nothing in it."""
    import pyarrow as pa

    from aclbroker.pipeline.ingest.texts import HEAD, Text

    try:
        with Text(path) as text:
            if text.is_opaque:
                return _Looked(path, _UNKNOWN, False, "")
            head = text.at(0, HEAD + 1).removeprefix(_BYTE_ORDER_MARK)
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise LogError(f"{path} cannot be decompressed: {error}") from error
    if not head.strip():
        return None
    _refuse_packed(path, head)
    first = next(line for line in head.split(b"\n") if line.strip())
    shown = first[:_SHOWN].decode(errors="replace")
    return _Looked(path, _form(head, options.pattern), len(head) <= HEAD or b"\0" in head, shown)


_PACKED: Final = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"BZh": ".bz2",
    b"\xfd7zXZ\0": None,
    b"PK\x03\x04": None,
    b"7z\xbc\xaf\x27\x1c": None,
}
"""First bytes of compressed files, with the suffix for which the file is decompressed.

None means that no suffix helps.
"""

_TAR: Final = slice(257, 262)


def _refuse_packed(path: str, head: bytes) -> None:
    """Raise LogError for an archive, and for a compressed file without the suffix for it."""
    if head[_TAR] == b"ustar":
        raise LogError(f"{path} is a tar archive: extract its files, and name their directory")
    for begin, end in _PACKED.items():
        if head.startswith(begin):
            how = f"give it a name that ends in {end}" if end else "decompress it"
            raise LogError(f"{path} is compressed: {how}")


_OURS, _KAFKAS, _UNKNOWN = "jsonl", "kafka", "unknown"


def _form(head: bytes, pattern: str | None) -> str:
    """Return the form of the lines at the beginning of a file; "" if no line has a known form."""
    from aclbroker.pipeline.ingest import json_line, kafka_line
    from aclbroker.pipeline.ingest.layout_search import layout_of, own_envelope

    layout = layout_of(head, pattern=pattern)
    none: tuple[object, ...]
    if layout is None:
        none = (
            json_line.JsonReason.JSON,
            json_line.JsonReason.NO_EVENT,
            json_line.JsonReason.EVENT,
            json_line.JsonReason.ENCODING,
        )
        envelope = own_envelope(head)
        lines = head.lstrip().split(b"\n")
        own = (line if envelope is None else envelope.opened(line) or line for line in lines)
        found = (json_line.parse(line) for line in own)
        return _OURS if any(each not in none for each in found) else ""
    none = (kafka_line.KafkaReason.HEAD, kafka_line.KafkaReason.OTHER)
    brought = (layout.brought(line, UTC) for line in head.split(b"\n"))
    return _KAFKAS if any(kafka_line.parse(line, "") not in none for line in brought) else ""


def _check_forms(name: str, looked: Sequence[_Looked], options: AuditOptions) -> None:
    from aclbroker.pipeline.ingest.unread import FORMS

    forms = {each.form for each in looked}
    if not all(each.is_whole for each in looked if not each.form):
        return
    if forms == {""}:
        beside = f" with --pattern {options.pattern!r}" if options.pattern else ""
        raise LogError(
            f"--input {name}: this is no log{beside}: {looked[0].path} begins with "
            f"{looked[0].first!r}; {FORMS}"
        )
    if options.form and forms.isdisjoint({options.form, _UNKNOWN}):
        is_kafkas = _KAFKAS in forms
        written = "Kafka's authorizer log" if is_kafkas else "our own audit log, in JSON Lines"
        raise LogError(
            f"--input {name}: not of --form {options.form}, but {written}: "
            f"leave the option out, or write --form {_KAFKAS if is_kafkas else _OURS}"
        )
