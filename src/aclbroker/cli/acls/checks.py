"""Which options of kafka-acls.sh go together, in the order in which Kafka's tool looks."""

from __future__ import annotations

from typing import Final

from aclbroker.cli.acls.options import Options, UsageError

_ACTIONS: Final = ("add", "remove", "list")
_EXCLUDED: Final = (
    (
        "list",
        (
            "producer",
            "consumer",
            "allow-host",
            "allow-principal",
            "deny-host",
            "deny-principal",
        ),
    ),
    ("producer", ("operation", "deny-principal", "deny-host")),
    ("consumer", ("operation", "deny-principal", "deny-host")),
)
"""Options, and what must not stand beside them."""

WARNING: Final = (
    "Warning: support for ACL configuration directly through the authorizer is deprecated and will "
    "be removed in a future release. Please use --bootstrap-server instead to set ACLs through the "
    "admin client."
)
"""The warning of Kafka's tool for ACLs in ZooKeeper, on standard error."""

_DIRECT: Final = ("authorizer", "authorizer-properties")
_NOT_OF_STORE: Final = (
    *("add", "remove", "force", "bootstrap-server", "bootstrap-controller"),
    *(*_DIRECT, "zk-tls-config-file"),
    *("producer", "consumer", "idempotent", "operation"),
    *("allow-host", "allow-principal", "deny-host", "deny-principal"),
)


def check(options: Options) -> str:
    """Return which of add, remove and list is asked for; raises `UsageError`."""
    if "store" in options or "at" in options:
        _check_store(options)
        return "list"
    _check_addresses(options)
    actions = [each for each in _ACTIONS if each in options]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    for used, others in _EXCLUDED:
        for other in others:
            if used in options and other in options:
                raise UsageError(f'Option "[{used}]" can\'t be used with option "[{other}]"')
    if "principal" in options and "list" not in options:
        raise UsageError("The --principal option is only available if --list is set")
    _check_roles(options)
    return actions[0]


def _check_store(options: Options) -> None:
    """Check the options that Kafka has not: those for the file of a store."""
    if "store" not in options:
        raise UsageError("The --at option is only available if --store is set")
    for each in _NOT_OF_STORE:
        if each in options:
            raise UsageError(f'Option "[store]" can\'t be used with option "[{each}]"')


def is_direct(options: Options) -> bool:
    """Return whether the options name the ACLs in ZooKeeper, without a broker."""
    return "authorizer-properties" in options and not _has_address(options)


def _has_address(options: Options) -> bool:
    return "bootstrap-server" in options or "bootstrap-controller" in options


def _check_addresses(options: Options) -> None:
    if any(each in options for each in _DIRECT):
        _check_direct(options)
        return
    given = ("bootstrap-server" in options) + ("bootstrap-controller" in options)
    if given != 1:
        which = "Only one" if given else "One"
        raise UsageError(
            f"{which} of --bootstrap-server or --bootstrap-controller must be specified"
        )


def _check_direct(options: Options) -> None:
    """Check the options of ZooKeeper as the tool of Kafka 3.9.1 does."""
    has_address = _has_address(options)
    if has_address and "authorizer" in options:
        raise UsageError("Only one of --bootstrap-server or --authorizer must be specified")
    if "authorizer-properties" not in options:
        raise UsageError('Missing required argument "[authorizer-properties]"')
    if not has_address and "command-config" in options:
        raise UsageError(
            "The --command-config option can only be used with --bootstrap-server option"
        )
    if has_address:
        raise UsageError(
            "The --authorizer-properties option can only be used with --authorizer option"
        )


def _check_roles(options: Options) -> None:
    produces, consumes = "producer" in options, "consumer" in options
    if produces and "topic" not in options:
        raise UsageError("With --producer you must specify a --topic")
    if "idempotent" in options and not produces:
        raise UsageError("The --idempotent option is only available if --producer is set")
    lacks = "topic" not in options or "group" not in options
    others = "cluster" in options or "transactional-id" in options
    if consumes and (lacks or (others and not produces)):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )
