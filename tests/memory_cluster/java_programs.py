"""Java programs that nobody here wrote, with the rights that docs/applications.md gives them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from aclbroker.acl.acl_text import acl_text
from aclbroker.acl.bindings import AclBinding, PatternType
from aclbroker.acl.files.policy import parse_policy
from aclbroker.testing import AclBroker
from aclbroker.testing.policies import smallest_policy
from tests.support.packages import JVM_FLAGS, java_command
from tests.support.process import LoggedProcess
from tests.support.tutorial import blocks

Found = TypeVar("Found")

_PAGE = Path(__file__).parents[2] / "docs" / "applications.md"
_WITHIN = 90.0


def documented(file: str) -> list[AclBinding]:
    """Return the ACLs of a policy file that the page shows."""
    [text] = [block.text for block in blocks(_PAGE.read_text()) if block.file == file]
    return list(parse_policy(text).acls)


class Program(LoggedProcess):
    """A JVM that runs the class `main` of the jars in a directory."""

    def __init__(self, directory: Path, main: str, jars: Path, *arguments: Path | str) -> None:
        directory.mkdir(exist_ok=True)
        command = java_command(main, jars, minimum=17, flags=(*JVM_FLAGS, "-Xmx256m"))
        super().__init__([*command, *map(str, arguments)], directory, "program.log")

    def until(self, look: Callable[[], Found | None]) -> Found:
        """Return what is found; RuntimeError with the log if the program ends before that."""
        return self.wait_until_ready(look, _WITHIN)


@contextlib.contextmanager
def running(program: Program) -> Iterator[Program]:
    """Run a program, which is killed at the end if it still runs."""
    program.spawn()
    try:
        yield program
    finally:
        if program.running.poll() is None:
            program.kill()


def java_config(broker: AclBroker, user: str, prefix: str = "") -> dict[str, Any]:
    """Return how a user's Java clients log in, under names with a prefix."""
    config = broker.client_config(user, "java")
    return {prefix + name: value for name, value in config.items()}


def properties_file(path: Path, properties: Mapping[str, Any]) -> Path:
    """Write a Java properties file; its directory is made if need be."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path


def assert_just_enough(broker: AclBroker, acls: list[AclBinding]) -> None:
    """Assert that nothing was denied, and that each of the ACLs was needed for something."""
    assert list(map(str, broker.denials())) == []
    prefixes = [acl.resource_name for acl in acls if acl.pattern_type is PatternType.PREFIXED]
    used = smallest_policy(broker.used(), prefixes)
    assert list(map(acl_text, sorted(used))) == list(map(acl_text, sorted(acls)))


def assert_is_missed(broker: AclBroker, program: Program, acl: AclBinding) -> None:
    """Take an ACL away from a running program; assert that what it is denied names this ACL."""
    broker.revoke([acl])
    program.until(
        lambda: any(f"add {acl_text(acl)}" == str(each.change) for each in broker.denials()) or None
    )
