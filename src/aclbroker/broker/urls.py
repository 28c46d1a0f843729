"""URLs of stores and clusters, and addresses, as messages may show them."""

from __future__ import annotations

import re
from typing import Final

_LOGIN: Final = re.compile(r"\A([A-Za-z][\w+.-]*:/{0,2})(?!/).*@", re.ASCII | re.DOTALL)
"""The scheme of a URL and the login behind it. A third slash begins a path, which may have an @."""


def without_login(text: str) -> str:
    """Return a URL, or an address, without the login that it may have.

    No URL here takes one, so somebody writes one now and then, and no log may keep it.
    """
    return _LOGIN.sub(r"\1***@", text)
