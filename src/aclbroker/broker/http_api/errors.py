"""Errors as MDS answers them: a status, and an object that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Final

_TYPES: Final = {
    HTTPStatus.BAD_REQUEST: "INVALID REQUEST DATA",
    HTTPStatus.UNAUTHORIZED: "UNAUTHENTICATED",
    HTTPStatus.FORBIDDEN: "FORBIDDEN",
}

_SHOWN: Final = 200
"""How many characters of what a client sent a message repeats."""

_LISTED: Final = 20


class ApiError(Exception):
    """What a call is refused with; the text is for its user.

    ``errors`` are the mistakes one by one: the place in the request, and what is wrong there.
    ``ends`` tells that the connection is closed after it.
    """

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        errors: Sequence[tuple[str, str]] = (),
        *,
        ends: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.errors = errors
        self.ends = ends

    def body(self) -> dict[str, Any]:
        """Return the object that is answered."""
        found: dict[str, Any] = {
            "status_code": self.status.value,
            "error_code": self.status.value * 100 + 1,
            "type": _TYPES.get(self.status, self.status.phrase.upper()),
            "message": str(self),
        }
        if self.errors:
            found["errors"] = [
                {"error_type": kind, "message": message} for kind, message in self.errors
            ]
        return found


def bad_request(message: str, *errors: tuple[str, str]) -> ApiError:
    """Return the error of a request that is not as it must be."""
    return ApiError(HTTPStatus.BAD_REQUEST, message, errors)


def shown(text: object) -> str:
    """Return a text of the client's as messages show it."""
    found = str(text)
    return repr(found if len(found) <= _SHOWN else f"{found[:_SHOWN]}...")


def listed(names: Iterable[str]) -> str:
    """Return names, or the first of them."""
    found = list(names)
    rest = len(found) - _LISTED
    return ", ".join(found[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")
