"""What the messages of the topic are: each sets an ACL or a record, or removes it.

The key is JSON without spaces, so that one thing has one key, which Kafka compacts by:
``["acl","TOPIC","orders","LITERAL","User:alice","*","READ","ALLOW"]``, ``["record",kind,name]``, or
``["format"]`` for the version of all this. The value is JSON as well, with who asked for it; where
a thing is removed there is none, and the header ``origin`` says who did. The header ``transaction``
has an id and how many messages have it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.broker.stores.store import Origin

FORMAT_VERSION: Final = 1

_ACL, _RECORD, _FORMAT = "acl", "record", "format"
_TRANSACTION, _ORIGIN = "transaction", "origin"
_SIZE_DIGITS: Final = 9

_RESTS_AT_ONCE: Final = 512
"""After what is left of so many transactions others have their turn."""

Headers = tuple[tuple[str, bytes | None], ...]
"""Those that others write may have no value."""


class Message(NamedTuple):
    """A message of the topic as it is written and read; without a value it removes its key."""

    key: bytes
    value: bytes | None
    headers: Headers


class Transaction(NamedTuple):
    """To which transaction a message belongs, and how many messages that has."""

    id: str
    size: int


class Setting(NamedTuple):
    """What one message says; one of ``binding``, ``record`` and ``version`` is not None."""

    binding: AclBinding | None
    record: tuple[str, str] | None
    """The kind and the name of a record."""

    version: int | None
    """The version of the messages of a topic."""

    value: str | None
    """Of a record, unless it ``is_removed``."""

    is_removed: bool
    transaction: Transaction | None
    """None for what others wrote without one."""

    origin: Origin | None


class UnreadableMessage(ValueError):
    """A message is not as it is written here; the text says why."""


class NewerFormat(ValueError):
    """The topic was written by a newer version; the text says so."""


def messages_of(
    added: Collection[AclBinding],
    removed: Collection[AclBinding],
    records: Mapping[tuple[str, str], str | None],
    origin: Origin,
    transaction: str,
    *,
    with_format: bool,
) -> Iterator[Message]:
    """Yield the messages of a change; a record without a value is removed.

    ``with_format`` has the version of the format come first, for a topic without it.
    """
    size = len(added) + len(removed) + len(records) + with_format
    who = origin._asdict()
    asked = _json(who)
    member = (_TRANSACTION, f"{transaction} {size}".encode())
    put: Headers = (member,)
    gone: Headers = (member, (_ORIGIN, asked))
    if with_format:
        yield Message(_json([_FORMAT]), _json({"version": FORMAT_VERSION} | who), put)
    for binding in removed:
        yield Message(key_of(binding), None, gone)
    for binding in added:
        yield Message(key_of(binding), asked, put)
    for (kind, name), value in records.items():
        key = _json([_RECORD, kind, name])
        if value is None:
            yield Message(key, None, gone)
        else:
            yield Message(key, _json({"value": value} | who), put)


def key_of(binding: AclBinding) -> bytes:
    """Return the key of an ACL, which has all that tells it from others."""
    return _json([_ACL, *fields_of(binding)])


def fields_of(binding: AclBinding) -> tuple[str, ...]:
    """Return an ACL as texts."""
    resource_type, name, pattern, principal, host, operation, permission = binding
    return (
        *(resource_type.name, name, pattern.name, principal, host),
        *(operation.name, permission.name),
    )


def binding_of(fields: Sequence[str]) -> AclBinding:
    """Return the ACL of which these are the texts. Raises ValueError and KeyError."""
    resource_type, name, pattern, principal, host, operation, permission = fields
    return AclBinding(
        ResourceType[resource_type],
        name,
        PatternType[pattern],
        principal,
        host,
        AclOperation[operation],
        AclPermission[permission],
    )


def read(message: Message) -> Setting:
    """Return what a message says. Raises `UnreadableMessage`, and `NewerFormat`."""
    key = _parsed("key", message.key)
    headers = dict(message.headers)
    value = None if message.value is None else _parsed("value", message.value)
    said = value if isinstance(value, dict) else {}
    if value is not None and value is not said:
        raise UnreadableMessage("its value is no object")
    if not isinstance(key, list) or not all(isinstance(each, str) for each in key):
        raise UnreadableMessage("its key is no list of texts")
    if not _is_canonical(key, message.key):
        raise UnreadableMessage("its key is not written as it is here")
    about = (value is None, _transaction(headers), _origin(said, headers))
    match key:
        case [kind, *fields] if kind == _ACL:
            return Setting(_binding(fields), None, None, None, *about)
        case [kind, of_kind, name] if kind == _RECORD:
            return Setting(None, (of_kind, name), None, _text_of(said, value), *about)
        case [kind] if kind == _FORMAT:
            return Setting(None, None, _version(said), None, *about)
    raise UnreadableMessage(f"its key {key!r} is of no known kind")


def _is_canonical(key: list[str], text: bytes) -> bool:
    """Whether a key is written as it would be here.

    Another one of the same thing is another key to Kafka: what is removed here would stay in the
    topic under that, and come back.
    """
    try:
        return _json(key) == text
    except UnicodeEncodeError:  # of a lone surrogate, which was written as an escape
        return False


def _text_of(said: Mapping[str, Any], value: Any) -> str | None:
    found = said.get("value")
    if value is not None and not isinstance(found, str):
        raise UnreadableMessage("a record without a text")
    return found


def _version(said: Mapping[str, Any]) -> int:
    version = said.get("version")
    if not isinstance(version, int):
        raise UnreadableMessage("a format without a version")
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"version {version} of the messages, and this program knows {FORMAT_VERSION} at most"
        )
    return version


def _binding(fields: list[str]) -> AclBinding:
    try:
        binding = binding_of(fields)
    except (ValueError, KeyError):
        raise UnreadableMessage(f"its key {fields!r} is no ACL") from None
    reason = invalid_reason(binding)
    if reason is not None:
        raise UnreadableMessage(f"its key {fields!r} is no ACL: {reason}")
    return binding


def transaction_id(headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """Return the id of the transaction that the headers of a message tell, None for none."""
    text = dict(headers).get(_TRANSACTION)
    return None if text is None else text.decode(errors="replace").partition(" ")[0]


def _transaction(headers: Mapping[str, bytes | None]) -> Transaction | None:
    text = headers.get(_TRANSACTION)
    if text is None:
        return None
    name, _, size = text.decode(errors="replace").partition(" ")
    if not size.isascii() or not size.isdigit() or len(size) > _SIZE_DIGITS:
        raise UnreadableMessage(f"its header {_TRANSACTION} has no size")
    return Transaction(name, int(size))


def _origin(said: Mapping[str, Any], headers: Mapping[str, bytes | None]) -> Origin | None:
    if not said and _ORIGIN in headers:
        found = _parsed(f"header {_ORIGIN}", headers[_ORIGIN])
        said = found if isinstance(found, dict) else {}
    principal, host, time_ms = (said.get(name) for name in Origin._fields)
    if not isinstance(host, str) or not isinstance(time_ms, int):
        return None
    return Origin(principal, host, time_ms) if isinstance(principal, str | None) else None


def _parsed(part: str, text: bytes | None) -> Any:
    try:
        return json.loads(text or b"")
    except (ValueError, RecursionError):
        raise UnreadableMessage(f"its {part} is no JSON") from None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_Members = list[tuple[int, Setting]]
_Offsets = dict[tuple[Any, ...], int]


class Whole:
    """A transaction of which all messages have come, or a message without one.

    It may have a hundred thousand settings, and to go through them, or to free them all at once,
    takes long. So they can be gone through once, each is free then, and they must be used up
    before the `Assembly` is given another message.
    """

    __slots__ = ("_members", "_newest", "position")

    def __init__(self, position: int, members: _Members, newest: _Offsets) -> None:
        self.position = position
        """The offset behind its last message."""

        self._members = members
        self._newest = newest

    def __len__(self) -> int:
        """Return how many settings are left, at most."""
        return len(self._members)

    @property
    def settings(self) -> Iterator[Setting]:
        """Take what it says, in the order of the messages."""
        members, newest = self._members, self._newest
        members.reverse()
        while members:
            offset, setting = members.pop()
            if newest.get(_thing(setting), offset) <= offset:
                yield setting


class Assembly:
    """Puts transactions together again from messages that come in the order of their offsets.

    Those of several brokers can be mixed, and a consumer that reads what is committed may be given
    the first messages of one before its last, because of another that is still open. Each thing
    ends up as the message with the highest offset says, whichever transaction ends first.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Members] = {}
        # The offsets of what came since the oldest one that is open began.
        self._newest: _Offsets = {}
        self._forgotten: list[_Offsets] = []

    def take(self, offset: int, setting: Setting) -> Whole | None:
        """Take the next message; return its transaction if that is whole with it."""
        transaction = setting.transaction
        members = [(offset, setting)]
        if transaction is not None and transaction.size > 1:
            members = self._open.setdefault(transaction.id, [])
            members.append((offset, setting))
        if self._open:
            self._newest[_thing(setting)] = offset
        if transaction is not None and len(members) < transaction.size:
            return None
        if transaction is not None:
            self._open.pop(transaction.id, None)
        return self._whole(offset + 1, members)

    async def rest(self, ids: Collection[str], position: int) -> Whole:
        """Return what came of transactions that are not whole, and forget these.

        When all messages have come that were there when one of theirs did, up to a position, this
        is what compaction has left of them.
        """
        members: _Members = []
        for number, name in enumerate(ids, 1):
            # Before the last is taken, since then it would look as if all were told.
            if not number % _RESTS_AT_ONCE:
                await asyncio.sleep(0)
            members += self._open.pop(name, ())
        return self._whole(position, members)

    @property
    def unfinished(self) -> frozenset[str]:
        """The ids of transactions of which messages are missing."""
        return frozenset(self._open)

    def has_any(self, ids: Iterable[str]) -> bool:
        """Whether of one of these transactions messages are missing."""
        return any(name in self._open for name in ids)

    def free(self, most: int) -> None:
        """Free some of the memory that is needed no longer: of so many messages at most."""
        while self._forgotten and most > 0:
            offsets = self._forgotten[-1]
            for _ in range(min(most, len(offsets))):
                offsets.popitem()
                most -= 1
            if not offsets:
                self._forgotten.pop()

    def _whole(self, position: int, members: _Members) -> Whole:
        whole = Whole(position, members, self._newest)
        if self._newest and not self._open:
            self._forgotten.append(self._newest)
            self._newest = {}
        return whole


def _thing(setting: Setting) -> tuple[Any, ...]:
    return setting.binding or setting.record or ()
