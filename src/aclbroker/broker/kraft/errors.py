"""The error that says why a metadata log cannot be read."""

from __future__ import annotations


class KraftError(Exception):
    """There is no metadata log, or it is damaged; the text names the file and the offset."""
