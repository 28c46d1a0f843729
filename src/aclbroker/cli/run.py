"""`aclbroker run`: a command of any language with a broker of its own, under a policy or recorded.

Its imports take place only when it runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aclbroker.terminal import complain
from aclbroker.testing.session import no_login

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.cli.child import Child
    from aclbroker.testing import AclBroker, Denial

_DENIED: Final = 1
_NOT_STARTED: Final = 1
_NOT_WRITTEN: Final = 1
_NOT_TESTED: Final = 1
_WRITTEN_WITHIN: Final = 5.0
_SHOWN_AT_ONCE: Final = 20
"""How many denials are shown as they happen; all are shown at the end."""

_NOT_FOUND: Final = 127
_FIRST_USER: Final = "app"
_LONGEST_USER: Final = 200
"""How many bytes a user's name may have, which is also that of a file."""


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a command beside a broker with a cluster in memory; print what it was denied."""

    words: Sequence[str]
    policy: Path | None = None
    record: Path | None = None
    prefixes: Sequence[str] = ()
    users: Sequence[str] = (_FIRST_USER,)
    """The users, of whom the first is the one in the environment of the command."""

    topics: Mapping[str, int] = field(default_factory=dict)
    variable: str = "KAFKA_BOOTSTRAP_SERVERS"
    nodes: int = 1
    overrides: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> int:
        """Return the command's exit status, or 1 if it is 0 and something was denied."""
        from aclbroker.cli.child import Child

        with Child() as child:
            return self._run(child)

    def _run(self, child: Child) -> int:
        from aclbroker.broker.config import ConfigError
        from aclbroker.broker.server.start_error import StartError
        from aclbroker.cli.acl_files import acls_of_file
        from aclbroker.testing import AclBroker

        if self.record is not None and not self.record.absolute().parent.is_dir():
            return _failed(f"--record: there is no directory for {self.record}")
        try:
            enforced: Sequence[AclBinding] = ()
            if self.policy is not None:
                enforced = acls_of_file(self.policy.read_bytes(), str(self.policy)).policy.acls
            broker = AclBroker(
                enforced,
                topics=self.topics,
                properties=self.overrides,
                nodes=self.nodes,
                records=self.record is not None,
            )
            broker.start()
        except ConfigError as error:
            return _failed(*error.problems)
        except (StartError, ValueError, OSError) as error:
            return _failed(str(error))
        try:
            with _environment(self, broker) as environment, _shown_denials(broker):
                status = _status(child, self.words, environment)
        finally:
            broker.stop()
        return self._told(broker, enforced, status)

    def _told(self, broker: AclBroker, enforced: Sequence[AclBinding], status: int) -> int:
        if self.record is not None and not self._recorded(self.record, broker, status):
            return status or _NOT_WRITTEN
        from aclbroker.testing.decisions import in_words

        denials = in_words(broker.denials(), broker.denials_left_out)
        for denial in denials:
            _tell(f"denied: {denial}")
        if self.policy is not None and not broker.logins():
            _tell(f"{self.policy} was not tested: {no_login(broker.failed_logins())}")
            return status or _NOT_TESTED
        if self.policy is not None and status:
            _tell(f"the command failed, so that more may be used of {self.policy}")
        else:
            for text in _never_used(enforced, broker):
                _tell(f"never used in {self.policy}: {text}")
        return status or (_DENIED if denials else 0)

    def _recorded(self, path: Path, broker: AclBroker, status: int) -> bool:
        """Write the policy of what was used, and tell whether that could be done."""
        from aclbroker.acl.files.policy import Policy, write_policy
        from aclbroker.testing.policies import smallest_policy

        acls = smallest_policy(broker.used(), self.prefixes)
        if not acls:
            why = "no client asked for anything that needs an ACL"
            if not broker.logins():
                why = no_login(broker.failed_logins())
            if status:
                why = "the command failed"
            _tell(f"not recorded: {why}, and {path} is as it was")
            return False
        try:
            write_policy(Policy(list(acls)), path)
        except OSError as error:
            _tell(f"not recorded: {path}: {error.strerror or error}")
            return False
        lacks = ", which may lack what the command would have done" if status else ""
        _tell(f"recorded {len(acls)} ACLs: {path}{lacks}")
        return True


@contextmanager
def _shown_denials(broker: AclBroker) -> Iterator[None]:
    """Show the first denials as they happen, because a denied consumer may retry for ever.

    A thread writes them, so a terminal that is not read never blocks the broker.
    """
    from queue import SimpleQueue
    from threading import Thread

    denials: SimpleQueue[Denial | None] = SimpleQueue()

    def show() -> None:
        shown: set[str] = set()
        while (denial := denials.get()) is not None:
            text = str(denial)
            if text not in shown and len(shown) < _SHOWN_AT_ONCE:
                shown.add(text)
                _tell(f"denied just now: {text}")

    writer = Thread(target=show, name="denials", daemon=True)
    writer.start()
    broker.on_denial(denials.put)
    try:
        yield
    finally:
        denials.put(None)
        writer.join(_WRITTEN_WITHIN)


def _never_used(enforced: Sequence[AclBinding], broker: AclBroker) -> Iterator[str]:
    """Yield the ACLs that by themselves allowed nothing of what was done."""
    from aclbroker.acl.acl_text import acl_text
    from aclbroker.testing.policies import never_used

    yield from map(acl_text, never_used(enforced, broker.used()))


def add_run(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "run",
        help="run a command beside a broker in memory, under a policy",
        description="Start a broker with a cluster in memory on free ports, run a command whose "
        "environment says where it is and how to log in, and print what was denied with the ACLs "
        "that would allow it. The exit status is the command's, or 1 if something was denied.",
        allow_abbrev=False,
    )
    rules = parser.add_mutually_exclusive_group()
    rules.add_argument("--policy", metavar="FILE", type=Path, help="the policy file to enforce")
    rules.add_argument(
        "--record",
        metavar="FILE",
        type=Path,
        help="allow everything, and write the smallest policy file that allows what was done",
    )
    parser.add_argument(
        "--record-prefix",
        metavar="PREFIX",
        action="append",
        default=[],
        help="have an ACL for all names with this prefix in the recorded policy; may be repeated",
    )
    parser.add_argument(
        "--user",
        metavar="NAME",
        type=_user,
        action="append",
        default=[],
        help=f"a user; the command logs in as the first (default: {_FIRST_USER})",
    )
    parser.add_argument(
        "--topic",
        metavar="NAME[:PARTITIONS]",
        type=_topic,
        action="append",
        default=[],
        help="a topic that there is from the start on; may be repeated",
    )
    parser.add_argument(
        "--env",
        metavar="NAME",
        type=_variable,
        default="KAFKA_BOOTSTRAP_SERVERS",
        help="the variable with the broker's address (default: %(default)s)",
    )
    parser.add_argument("--nodes", metavar="N", type=int, default=1, help="how many brokers")
    parser.add_argument(
        "--override",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting of the broker; may be given several times",
    )
    parser.add_argument("words", metavar="COMMAND", nargs="+", help="the command, behind --")


def run_command(options: argparse.Namespace) -> RunCommand:
    """Return the command that parsed options describe."""
    return RunCommand(
        options.words,
        options.policy,
        options.record,
        options.record_prefix,
        options.user or [_FIRST_USER],
        dict(options.topic),
        options.env,
        options.nodes,
        dict(options.override),
    )


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.partition(":")
    if not name or (colon and not (count.isdecimal() and int(count))):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:PARTITIONS")
    return name, int(count) if colon else 1


def _user(text: str) -> str:
    # What cannot be printed cannot always be encoded either.
    is_name = text and text.isprintable() and "/" not in text
    if not is_name or len(text.encode()) > _LONGEST_USER:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no user's name: it needs 1 to {_LONGEST_USER} bytes, which can be "
            "printed, without '/'"
        )
    return text


def _variable(text: str) -> str:
    if not text or "=" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a variable")
    return text


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        # The message leaves out the text, because it may contain a password.
        raise argparse.ArgumentTypeError("expected NAME=VALUE, such as num.partitions=3")
    return name.strip(), value


@contextmanager
def _environment(command: RunCommand, broker: AclBroker) -> Iterator[dict[str, str]]:
    """Give the environment of the command; the files of its users are gone afterwards."""
    # With its handler for what is not ASCII, which Java reads as Latin-1 otherwise.
    import javaproperties  # noqa: F401

    with tempfile.TemporaryDirectory(prefix="aclbroker-") as directory:
        for user in command.users:
            settings = broker.client_config(user, "java")
            text = "".join(f"{name}={value}\n" for name, value in settings.items())
            path = Path(directory, f"{user}.properties")
            path.touch(mode=0o600)
            escaped = text.replace("\\", "\\\\")
            path.write_text(escaped, encoding="ascii", errors="javapropertiesreplace")
        first = command.users[0]
        faults = {} if broker.faults_url is None else {"ACLBROKER_FAULTS_URL": broker.faults_url}
        yield (
            os.environ
            | faults
            | {
                command.variable: broker.bootstrap_servers,
                "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                "KAFKA_SASL_MECHANISM": "PLAIN",
                "KAFKA_SASL_USERNAME": first,
                "KAFKA_SASL_PASSWORD": broker.password(first),
                "KAFKA_CLIENT_PROPERTIES": str(Path(directory, f"{first}.properties")),
                "KAFKA_CLIENT_PROPERTIES_DIR": directory,
            }
        )


def _status(child: Child, words: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        return child.run(words, environment)
    except OSError as error:
        _tell(f"{words[0]}: {error.strerror or error}")
        return _NOT_FOUND


def _tell(line: str) -> None:
    # A terminal may be gone, and what is to be recorded is all the same.
    with suppress(OSError):
        complain(f"aclbroker run: {line}")


def _failed(*lines: str) -> int:
    for line in lines:
        _tell(line)
    return _NOT_STARTED
