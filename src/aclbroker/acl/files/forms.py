"""Recognises the form of a file of ACLs, by its text and then by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from aclbroker.acl.files import old_listing, tables
from aclbroker.acl.files.listing import LIST_HEADS, read_listing
from aclbroker.acl.files.policy import Policy, PolicyError, parse_policy
from aclbroker.acl.files.strimzi import read_strimzi
from aclbroker.acl.files.words import FIELDS


class Form(NamedTuple):
    """A form of ACL files: its name for messages, and the function that reads it.

    ``read`` takes a text and the name of its file. It raises ValueError, or a PolicyError that
    names the file.
    """

    name: str
    read: Callable[[str, str], Policy]


class _Refusal(NamedTuple):
    """An unsupported form: its name, a pattern of its beginning, and advice for the user."""

    name: str
    beginning: re.Pattern[str]
    remedy: str


POLICY: Final = Form("a policy", parse_policy)
LISTING: Final = Form("what kafka-acls.sh --list printed", read_listing)
JSON: Final = Form("JSON of aclbroker migrate", tables.read_json)
CSV: Final = Form("CSV of aclbroker migrate", tables.read_csv)
_OLD_LISTING: Final = Form(
    "what kafka-acls.sh --list printed before Kafka 2.2", old_listing.read_old_listing
)
_KSM: Final = Form("CSV of kafka-security-manager", tables.read_ksm)
_RPK: Final = Form("JSON of rpk security acl list", tables.read_rpk)
_STRIMZI: Final = Form("KafkaUsers of Strimzi", read_strimzi)

KNOWN: Final = (
    "a policy file (version: 1, acls: ...), what kafka-acls.sh --list printed, JSON or CSV of "
    "aclbroker migrate, CSV of kafka-security-manager, JSON of rpk, or KafkaUsers of Strimzi"
)
"""The supported forms, for messages."""

_BY_END: Final = {
    ".yaml": POLICY,
    ".yml": POLICY,
    ".json": JSON,
    ".csv": CSV,
    ".txt": LISTING,
}
_EXPORT: Final = (
    "list the ACLs with kafka-acls.sh --list, or read the cluster with --bootstrap-server"
)
_REFUSALS: Final = (
    _Refusal(
        "Terraform's HCL",
        re.compile(
            r'(?:resource|data|provider|variable|module|output)\s+"[^"\n]*"|(?:terraform|locals)\s*\{'
        ),
        _EXPORT,
    ),
    _Refusal(
        "the table of rpk security acl list",
        re.compile(r"PRINCIPAL\s+HOST\s+RESOURCE-TYPE\s"),
        "write it with --format json",
    ),
    _Refusal(
        "a table of the Confluent CLI",
        re.compile(r"Principal\s*\|\s*Permission\s*\|"),
        _EXPORT,
    ),
    _Refusal(
        "a file of kafka-acls.sh commands",
        re.compile(
            r"#!|(?:export |set |sudo |docker |kubectl )|(?:\S*/)?kafka-acls(?:\.sh|\.bat)?\s"
            r"|(?:\S*/)?aclbroker\s+acls\s"
        ),
        "convert it: aclbroker migrate --from file:acls.sh --to file:acls.yaml",
    ),
    _Refusal(
        "what kafka-topics.sh --describe printed", re.compile(r"Topic: ?\S+\s+TopicId"), _EXPORT
    ),
)
_POLICY_KEY: Final = re.compile(r"^[ \t]*(?:\{\s*)?(?:version|acls|cluster)[ \t]*:", re.MULTILINE)
_KIND: Final = re.compile(r"^(?:- |  )*[\"']?kind[\"']?:[ \t]*[\"']?(\w+)", re.MULTILINE)
_RESOURCE: Final = re.compile(r"^[\"']?apiVersion[\"']?:", re.MULTILINE)
_SHOWN: Final = 60


def form_of(text: str, source: str) -> Form:
    """Return the form of a text. Raises PolicyError, which names an unsupported form."""
    stripped = text.lstrip()
    first = stripped.split("\n", 1)[0].strip()
    if first.startswith(LIST_HEADS):
        is_old = old_listing.HEAD.fullmatch(first) is not None
        return _OLD_LISTING if is_old else LISTING
    found = _of_object(stripped, source) or _of_table(first) or _of_yaml(text, source)
    if found is not None:
        return found
    uncommented = next(
        (line.strip() for line in text.split("\n") if line.strip() and line.strip()[0] != "#"), ""
    )
    for refusal in _REFUSALS:
        if refusal.beginning.match(first) or refusal.beginning.match(uncommented):
            raise PolicyError(
                f"{source}: this is {refusal.name}, which is not read here: {refusal.remedy}"
            )
    by_end = _BY_END.get(PurePath(source).suffix.lower())
    if not uncommented:
        # The reader refuses an empty file: a command that failed may have written it.
        return CSV if by_end is CSV else POLICY
    if by_end is not None:
        return by_end
    raise PolicyError(
        f"{source}: line 1: {first[:_SHOWN]!r} begins no form of ACLs that is read here: {KNOWN}"
    )


def _of_object(text: str, source: str) -> Form | None:
    """Return the form of a text that is JSON; None for any other text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        found = tables.loaded(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    if "matches" in found:
        return _RPK
    if "kind" in found:
        return _kind(str(found["kind"]), source)
    if "terraform_version" in found:
        raise PolicyError(f"{source}: this is Terraform's state, which is not read here: {_EXPORT}")
    acls = found.get("acls")
    entries: list[Any] = acls if isinstance(acls, list) else []
    if any(isinstance(each, dict) and "permissionType" in each for each in entries):
        raise PolicyError(
            f"{source}: these are the ACLs of one resource in ZooKeeper, without its name: read "
            "all of them with aclbroker migrate --from zookeeper://HOST:PORT"
        )
    is_policy = any(isinstance(each, dict) and "rules" in each for each in entries)
    return POLICY if is_policy else JSON


def _of_table(first: str) -> Form | None:
    """Return the form of a CSV by the column names in its first line; None for other texts."""
    names = {name.strip().strip('"') for name in first.split(",")}
    if "KafkaPrincipal" in names:
        return _KSM
    return CSV if names.issuperset(FIELDS) else None


def _of_yaml(text: str, source: str) -> Form | None:
    if _RESOURCE.search(text):
        kinds = set(_KIND.findall(text))
        return _kind("KafkaUser" if "KafkaUser" in kinds else min(kinds, default="?"), source)
    return POLICY if _POLICY_KEY.search(text) else None


def _kind(kind: str, source: str) -> Form:
    """Return the form of a Kubernetes resource. Raises PolicyError for one that has no ACLs."""
    if kind not in ("KafkaUser", "KafkaUserList", "List"):
        raise PolicyError(
            f"{source}: this is a {kind} of Kubernetes, which has no ACLs; KafkaUsers of Strimzi do"
        )
    return _STRIMZI
