"""The options of kafka-acls.sh, and how its parser (JOpt Simple) reads a command line.

It is not argparse's way: an option that needs a value takes whatever comes next, be it an option;
``-topic x`` is ``--topic x``; words that belong to no option are passed over; and a value that is
not allowed is only noticed when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class OptionSpec(NamedTuple):
    """An option: what its value is called ("" for none), and what it is for."""

    name: str
    value: str
    meaning: str
    value_is_optional: bool = False


OPTIONS: Final = (
    OptionSpec("add", "", "add ACLs"),
    OptionSpec("remove", "", "remove ACLs, after asking"),
    OptionSpec("list", "", "list the ACLs of the resources, or all"),
    OptionSpec(
        "bootstrap-server", "HOST:PORT,...", "brokers of the cluster, which are tried in turn"
    ),
    OptionSpec(
        "bootstrap-controller",
        "HOST:PORT,...",
        "controllers of a KRaft cluster, instead of brokers",
    ),
    OptionSpec("command-config", "FILE", "a Kafka client's properties file, with the login", True),
    OptionSpec(
        "authorizer-properties",
        "zookeeper.connect=HOST:PORT[/CHROOT]",
        "the ACLs in ZooKeeper, without a broker (Kafka up to 3.9); also other settings of "
        "ZooKeeper, NAME=VALUE; may be repeated",
    ),
    OptionSpec(
        "authorizer",
        "CLASS",
        "with --authorizer-properties: kafka.security.authorizer.AclAuthorizer, the default",
    ),
    OptionSpec(
        "zk-tls-config-file",
        "FILE",
        "with --authorizer-properties: a file with settings zookeeper.ssl.*, and with the login",
    ),
    OptionSpec("topic", "NAME", "a topic; '*' is all of them"),
    OptionSpec("group", "NAME", "a group; '*' is all of them"),
    OptionSpec("cluster", "", "the cluster"),
    OptionSpec("transactional-id", "NAME", "a transactional id; '*' is all of them"),
    OptionSpec("delegation-token", "ID", "a delegation token; '*' is all of them"),
    OptionSpec("user-principal", "TYPE:NAME", "a user, whose tokens others make or describe"),
    OptionSpec(
        "resource-pattern-type",
        "literal|prefixed|any|match",
        "literal, the default, or prefixed; to list and remove, also any (of either type, with "
        "that very name) and match (all that concern a resource of that name)",
    ),
    OptionSpec("allow-principal", "TYPE:NAME", "who is allowed; User:* is everybody"),
    OptionSpec("deny-principal", "TYPE:NAME", "who is denied, whatever else allows it"),
    OptionSpec("allow-host", "HOST", "from where those allowed may come; by default '*'"),
    OptionSpec("deny-host", "HOST", "from where those denied may not come; by default '*'"),
    OptionSpec("operation", "OPERATION", "what is allowed or denied; by default All"),
    OptionSpec("producer", "", "Write, Describe and Create on topics, Write and Describe on ids"),
    OptionSpec("consumer", "", "Read and Describe on topics, Read on groups"),
    OptionSpec("idempotent", "", "with --producer, IdempotentWrite on the cluster, too"),
    OptionSpec("principal", "TYPE:NAME", "list the ACLs of this principal alone", True),
    OptionSpec("force", "", "ask nothing"),
    OptionSpec(
        "store",
        "URL",
        "list the ACLs of a store, such as sqlite:///aclbroker.db or kafka://HOST:PORT/TOPIC, "
        "and ask no broker",
    ),
    OptionSpec("at", "POSITION|TIME", "with --store: the ACLs that there were then"),
    OptionSpec("help", "", "print this"),
    OptionSpec("version", "", "print the version of aclbroker"),
)
"""All options, in the order of the help; each may be repeated.

Kafka's tool lacks ``store`` and ``at``, and since 4.0 also the options for ZooKeeper.
"""

_BY_NAME: Final = {each.name: each for each in OPTIONS}


def add_acls(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`, which tell what commands there are.

    A command line of it is read by `parse`.
    """
    acls = commands.add_parser(
        "acls",
        help="add, remove and list the ACLs of a cluster, as kafka-acls.sh",
        description="Add, remove and list the ACLs of a cluster.",
        allow_abbrev=False,
        add_help=False,
    )
    for each in OPTIONS:
        if each.value:
            acls.add_argument(f"--{each.name}", action="append", nargs="?", help=each.meaning)
        else:
            acls.add_argument(f"--{each.name}", action="store_true", help=each.meaning)


class UsageError(Exception):
    """The options are wrong; the text is what Kafka's tool says before it prints its help."""


class Options:
    """What a command line says: the options that are there, and their values in order."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def add(self, name: str, value: str | None) -> None:
        """Note an option, with a value if it has one."""
        values = self._values.setdefault(name, [])
        if value is not None:
            values.append(value)

    def all(self, name: str) -> Sequence[str]:
        """Return the values of an option in order."""
        return self._values.get(name, ())

    def one(self, name: str) -> str | None:
        """Return the value of an option, None if there is none; raises ValueError for two."""
        values = self.all(name)
        if len(values) > 1:
            raise ValueError(
                f"Found multiple arguments for option {name}, but you asked for only one"
            )
        return values[0] if values else None


def parse(words: Sequence[str]) -> Options:
    """Return the options of a command line; raises `UsageError`."""
    found = Options()
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            _take(word, rest, found)
    return found


def _take(word: str, rest: list[str], found: Options) -> None:
    """Take an option and its value, which may be the next of the words (the last of ``rest``)."""
    is_long = word.startswith("--")
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    spec = _BY_NAME.get(name)
    if spec is None:
        # With one dash it might be letters that are options by themselves; there are none.
        raise UsageError(f"{name if is_long else word[1]} is not a recognized option")
    if not spec.value:
        found.add(name, None)
    elif equals:
        found.add(name, value)
    elif not spec.value_is_optional:
        if not rest:
            raise UsageError(f"Option {name} requires an argument")
        found.add(name, rest.pop())
    elif rest and not (rest[-1].startswith("-") and rest[-1] not in ("-", "--")):
        found.add(name, rest.pop())
    else:
        found.add(name, None)
