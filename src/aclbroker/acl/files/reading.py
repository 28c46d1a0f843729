"""Reads files of ACLs in every supported form, for all commands and for applications."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aclbroker.acl.files.forms import CSV, JSON, KNOWN, LISTING, POLICY, Form, form_of
from aclbroker.acl.files.policy import Policy, PolicyError
from aclbroker.acl.files.text_files import TextFileError, text_of

__all__ = ["CSV", "JSON", "KNOWN", "LISTING", "POLICY", "Form", "Found", "acls_of", "read_acls"]


class Found(NamedTuple):
    """The ACLs of a file, and its form."""

    policy: Policy
    form: Form


def read_acls(path: str | Path) -> Policy:
    """Return the ACLs of a file in any form.

    Raises PolicyError, which names the file and the fault, and OSError for an unreadable file.
    """
    return acls_of(Path(path).read_bytes(), str(path)).policy


def acls_of(
    content: bytes | str, source: str, other_form: Callable[[str], Form | None] = lambda _: None
) -> Found:
    """Return the ACLs of a file's content. Raises PolicyError, which names ``source``.

    ``other_form`` recognises further forms: it returns the form of a text, None for other texts.
    """
    try:
        text = text_of(content, source) if isinstance(content, bytes) else content
        form = other_form(text) or form_of(text, source)
        return Found(form.read(text, source), form)
    except (PolicyError, TextFileError) as error:
        raise PolicyError(str(error)) from None
    except RecursionError:
        raise PolicyError(f"{source}: its lists or mappings are nested too deeply") from None
    except ValueError as error:
        raise PolicyError(f"{source}: {error}") from None
