"""The arguments of `aclbroker conformance record|compare|catalog`.

The suite is imported only when the command runs, so that the server starts fast.
"""

import argparse
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConformanceCommand:
    """Send the conformance suite to a broker; record its answers, or compare them.

    Or write what an aclbroker must be told to be sent the suite.
    """

    options: dict[str, Any]
    """The fields of `conformance.command.ConformanceOptions`, by name; for ``catalog`` none
    but the action.
    """

    def run(self) -> int:
        """Run the command; return 0 if recorded or equal, 1 if different, 2 if it failed."""
        from aclbroker.conformance.command import ConformanceOptions, run, write_catalog

        if self.options["action"] == "catalog":
            return write_catalog()
        return run(ConformanceOptions(**self.options))


def add_conformance(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`."""
    conformance = commands.add_parser(
        "conformance",
        help="compare how a broker authorizes with how Kafka does",
        description="Send every API's requests in several roles to a Kafka-compatible broker.",
        allow_abbrev=False,
    )
    actions = conformance.add_subparsers(dest="action", required=True)
    record = _action(actions, "record", "write a recording of what the broker answers")
    record.add_argument("--output", metavar="FILE", required=True, help="the recording's file")
    record.add_argument("--broker-name", metavar="NAME", help="what the recording says it is of")
    record.set_defaults(recording=None, format="text", offered_only=False)
    compare = _action(actions, "compare", "compare what the broker answers with a recording")
    compare.add_argument("--output", metavar="FILE", help="the report's file, not standard output")
    compare.add_argument(
        "--recording", metavar="FILE", help="a recording; without it that of Kafka 4.3.0"
    )
    compare.add_argument("--format", choices=("text", "json", "junit"), default="text")
    compare.add_argument(
        "--offered-only",
        action="store_true",
        help="leave out the versions that the broker does not offer, instead of reporting them",
    )
    compare.set_defaults(broker_name=None)
    actions.add_parser(
        "catalog",
        help="print the settings that give an aclbroker the suite's topics and groups",
        description="Print what to add to the server.properties of an aclbroker, which cannot "
        "create topics, before the suite is sent to it.",
        allow_abbrev=False,
    )


def conformance_command(options: argparse.Namespace) -> ConformanceCommand:
    """Return the command that parsed arguments describe."""
    given = vars(options)
    return ConformanceCommand({name: given[name] for name in given if name != "command"})


def _action(actions: Any, name: str, does: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name,
        help=does,
        description=f"Play the suite and {does}. Replaces all ACLs of the cluster.",
        allow_abbrev=False,
    )
    action.add_argument("--bootstrap-server", metavar="HOST:PORT", required=True)
    action.add_argument(
        "--command-config",
        metavar="FILE",
        required=True,
        help="a Kafka client's properties file: the super user's, and with the prefix "
        "conformance.user. those of the user who plays the other roles",
    )
    action.add_argument(
        "--suite",
        choices=("authorization", "behaviour"),
        default="authorization",
        help="what is played: requests of every API, to see who is refused what (the default), or "
        "dialogues about topics, records, groups and transactions, all of whose answers count",
    )
    action.add_argument(
        "--api",
        dest="apis",
        action="append",
        default=[],
        metavar="NAME",
        help="play the cases of this API alone, such as CreateAcls; may be repeated",
    )
    action.add_argument(
        "--yes",
        dest="confirmed",
        action="store_true",
        help="replace the ACLs of the cluster, which nothing brings back",
    )
    return action
