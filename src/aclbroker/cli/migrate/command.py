"""The options of `aclbroker migrate`, and the way of one move: plan, copy, compare, follow."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aclbroker.cli.cluster import failed, told

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.cli.migrate.following import Follower
    from aclbroker.cli.migrate.places import Place
    from aclbroker.cli.migrate.plan import Move

_INTERVAL_S: Final = 1.0
_WHOLE: Final = 100
_ROUNDS: Final = 5
"""How often what the source changes meanwhile is brought over before a move ends."""


@dataclass(frozen=True, slots=True)
class MigrateCommand:
    """Have one place have the ACLs of another."""

    source: str
    target: str
    command_config: str | None = None
    from_config: str | None = None
    to_config: str | None = None
    dry_run: bool = False
    prune: bool = False
    follow: bool = False
    interval: float = _INTERVAL_S
    accept_lost_denies: bool = False
    accept_empty_source: bool = False
    accept_loss: str = ""
    max_loss: int | None = None

    def run(self) -> int:
        """Run the command; return 0 if the target has all ACLs of the source, or may get them.

        It is 1 if the target cannot hold some, if the move failed, or if both differ afterwards.
        """
        from aclbroker.cli.migrate.moving import LostDenies
        from aclbroker.cli.migrate.places import PlaceError, open_place

        if self.source == self.target:
            return failed("--from and --to are the same place")
        try:
            self._check_configs()
            from_config = self.from_config or self.command_config
            to_config = self.to_config or self.command_config
            with (
                open_place(self.source, from_config) as source,
                open_place(self.target, to_config, is_target=True) as target,
            ):
                return self._move(source, target)
        except PlaceError as error:
            return failed(*str(error).splitlines())
        except LostDenies as error:
            return _refused(error.lost, "What came after them was not done")

    def _check_configs(self) -> None:
        from aclbroker.cli.migrate.places import PlaceError, takes_config

        given = (
            ("--from-config", self.from_config, [self.source]),
            ("--to-config", self.to_config, [self.target]),
            ("--command-config", self.command_config, [self.source, self.target]),
        )
        for option, config, urls in given:
            if config is not None and not any(map(takes_config, urls)):
                raise PlaceError(f"{option} is for a cluster or a ZooKeeper")

    def _move(self, source: Place, target: Place) -> int:
        from aclbroker.broker.authorizer.source_guard import SourceGuard
        from aclbroker.broker.config.access_rules import MAX_LOSS_PERCENT
        from aclbroker.cli.migrate.following import EMPTY, Follower
        from aclbroker.cli.migrate.plan import counted, denies, lost_lines, move

        guard = SourceGuard(
            MAX_LOSS_PERCENT if self.max_loss is None else self.max_loss,
            self.accept_loss,
            kept=False,
        )
        follower = Follower(source, target, may_lose_denies=self.accept_lost_denies, guard=guard)
        acls = follower.first().acls
        there = target.read(may_be_new=True)
        failed(*(f"{target.url}: {note}" for note in there.notes))
        planned = move(acls, there.acls, target.refusal, prune=self.prune)
        told(f"From {source.url}: {counted(len(acls))}, DENYs among them: {len(denies(acls)):,}")
        told(f"To {target.url}: {counted(len(there.acls))}")
        told(*planned.lines(prune=self.prune, shows_all=self.dry_run))
        removed = planned.changes.remove
        if removed and (acls or not self.accept_empty_source):
            # The operator sees what a single --prune removes. --follow runs unwatched.
            if self.follow or self.max_loss is not None:
                follower.judge(len(acls), len(there.acls), removed)
            elif not acls:
                return failed(f"{source.url}: {EMPTY}. Nothing was changed")
        of_source = set(acls)
        follower.lost = {acl: why for acl, why in planned.lost.items() if acl in of_source}
        staying = planned.lost.keys() - follower.lost.keys()
        if denies(follower.lost) and not self.accept_lost_denies:
            return _refused(planned.lost, "Nothing was changed")
        if planned.lost:
            failed(f"{counted(len(planned.lost))} cannot be moved:", *lost_lines(planned.lost))
        if self.dry_run:
            told("Nothing was changed.")
            return 1 if planned.lost else 0
        status = self._copy(planned, follower, target) or self._catch_up(follower)
        if self.follow and status == 0:
            status = 0 if follower.follow(self.interval) else 1
        return 1 if staying or follower.lost else status

    def _copy(self, planned: Move, follower: Follower, target: Place) -> int:
        """Make the changes and compare; return the exit status."""
        from aclbroker.cli.migrate.following import not_equal
        from aclbroker.cli.migrate.moving import difference, make
        from aclbroker.cli.migrate.plan import counted, lost_lines

        changes = planned.changes
        refused = make(changes, target, may_lose_denies=self.accept_lost_denies)
        if refused:
            failed(f"{target.url} refused {counted(len(refused))}:", *lost_lines(refused))
            follower.lost |= refused
        if changes:
            added = len(changes.create) - len(refused)
            told(f"{counted(added)} added, {len(changes.remove):,} removed.")
        wanted = changes.outcome(planned.there).difference(refused)
        wrong = difference(target, wanted)
        if wrong:
            return failed(f"{target.url}: {not_equal(wrong)}; run it again")
        follower.settle_loss()
        of_source = len(set(planned.source).intersection(wanted))
        are_all = of_source == len(planned.source)
        which = "all" if are_all else f"{of_source:,} of the"
        told(f"Verified: the target has {which} {counted(len(planned.source))} of the source.")
        return 0

    def _catch_up(self, follower: Follower) -> int:
        """Bring over what changed at the source meanwhile; return the exit status."""
        for _ in range(_ROUNDS):
            if not follower.settle():
                break
            if not follower.round():
                return 0
        if self.follow:
            return 0
        return failed("the source changes all the time; run it again, or with --follow")


def _refused(lost: Mapping[AclBinding, str], but: str) -> int:
    """Tell that DENYs would be lost, and return the exit status."""
    from aclbroker.cli.migrate.plan import denies, lost_lines

    return failed(
        *lost_lines(lost),
        f"DENYs that the target cannot hold: {len(denies(lost)):,}. Without them it would allow "
        f"more than the source. {but}; --accept-lost-denies moves the others",
    )


def add_migrate(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`."""
    migrate = commands.add_parser(
        "migrate",
        help="move ACLs from one place to another",
        description="Copy the ACLs of one place to another, and compare both (docs/migrate.md).",
        allow_abbrev=False,
    )
    places = (
        "file:PATH.yaml|json|csv|txt, sqlite:///PATH, kafka+acls://HOST:PORT, "
        "zookeeper://HOST:PORT/CHROOT, kafka://HOST:PORT/TOPIC, mds+https://HOST:PORT/CLUSTER_ID"
    )
    migrate.add_argument(
        "--from", dest="source", metavar="URL", required=True, help=f"{places} or kraft:///DIR"
    )
    migrate.add_argument("--to", dest="target", metavar="URL", required=True, help=places)
    for option, which in (("command", "both places"), ("from", "--from"), ("to", "--to")):
        migrate.add_argument(
            f"--{option}-config",
            metavar="FILE",
            help=f"a file of properties to reach a cluster or ZooKeeper with, for {which}",
        )
    migrate.add_argument(
        "--dry-run", action="store_true", help="show all that would change, and end"
    )
    migrate.add_argument(
        "--prune", action="store_true", help="remove what the target has and the source has not"
    )
    migrate.add_argument(
        "--accept-lost-denies",
        action="store_true",
        help="move the others even if the target cannot hold some DENYs",
    )
    migrate.add_argument(
        "--accept-empty-source",
        action="store_true",
        help="remove all that the target has even if the source has no ACLs when it is read first",
    )
    migrate.add_argument(
        "--accept-loss",
        metavar="TOKEN",
        default="",
        help="confirm one loss of ACLs of the source, by the token that the command told",
    )
    migrate.add_argument(
        "--max-loss",
        metavar="PERCENT",
        type=_percent,
        help="change nothing if the source has lost a larger share of its ACLs; by default, with "
        "--follow, that is half of them within a minute",
    )
    migrate.add_argument(
        "--follow",
        action="store_true",
        help="go on to bring over what changes at the source, until Ctrl-C",
    )
    migrate.add_argument(
        "--interval",
        metavar="SECONDS",
        type=_seconds,
        default=_INTERVAL_S,
        help=f"how long --follow waits before it looks again; default: {_INTERVAL_S:g}",
    )


def _percent(text: str) -> int:
    if not text.isdecimal() or int(text) > _WHOLE:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0 to 100")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to 86400")
    return value


def migrate_command(options: argparse.Namespace) -> MigrateCommand:
    """Return the command that parsed arguments describe."""
    given = vars(options)
    return MigrateCommand(**{name: given[name] for name in given if name != "command"})
