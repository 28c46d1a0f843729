"""Reads the files that the options name, before anything that takes long is started."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Final, NamedTuple

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.files.name_lists import NameListError, read_topics
from aclbroker.acl.files.policy import Policy
from aclbroker.acl.files.reading import read_acls
from aclbroker.pipeline.acls.broker_properties import read_broker_properties
from aclbroker.pipeline.acls.history import AclHistory
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.command.options import AuditOptions, Given
from aclbroker.pipeline.command.proposed import ProposedSettings
from aclbroker.pipeline.command.rules import (
    AclSet,
    Settings,
    check_known,
    existing,
    fitting,
    histories_of,
    rulesets,
)
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.report.content import Source

Describe = Callable[[str, str | None], Policy]
"""Returns the ACLs of one of `_PLACES`, with a client's properties file or without."""

ReadHistory = Callable[[str, str | None], AclHistory]
"""Returns the history of the ACLs of a store, by its URL, with a client's properties file or
without. Raises InputError."""

_STORE: Final = "sqlite:///"
_PLACES: Final = ("kafka://", "kraft:///", _STORE)
"""What is no file: a broker to ask, a controller's metadata log, a store."""
_CURRENT, _PROPOSED, _OTHER, _EARLIER = "--acls", "--proposed", "--other", "--earlier"
_HISTORY: Final = "--history"
_TOPIC: Final = re.compile(r"kafka://[^/]+/[^/]+")


class RuleFiles(NamedTuple):
    """The sets of ACLs by the option that named them, and the settings beside them."""

    sets: dict[str, list[AclSet]]
    settings: Settings
    topics: Sequence[tuple[Given, frozenset[str]]] = ()
    proposed: ProposedSettings = ProposedSettings()
    histories: Sequence[tuple[Given, AclHistory]] = ()

    @property
    def named_cluster(self) -> str | None:
        """The cluster that the ACLs in force are of, if they name just one."""
        found = {each.cluster or each.named for each in self.sets[_CURRENT]} - {None}
        return found.pop() if len(found) == 1 else None

    @property
    def read(self) -> Iterator[tuple[str, str]]:
        """What was read, and what it is."""
        for option, sets in self.sets.items():
            for each in sets:
                yield each.source, f"{len(each.acls):,} ACLs, {option}"
        for given, history in self.histories:
            yield given.value, f"{len(history):,} changes of ACLs, {_HISTORY}"

    @property
    def sources(self) -> list[Source]:
        """Where the rules came from."""
        return [
            Source(option, each.source, each.cluster or each.named)
            for option, sets in self.sets.items()
            for each in sets
        ] + [
            Source(_HISTORY, given.value, given.cluster or history.cluster)
            for given, history in self.histories
        ]

    def by_cluster(self, clusters: Sequence[str]) -> ClusterRules:
        """Return the rules for the clusters of a log. Raises InputError if they do not fit."""
        fits, left_out = {}, set()
        for option, sets in self.sets.items():
            fits[option], others = fitting(option, sets, clusters)
            left_out.update(others)
        histories, others = histories_of(self.histories, self.settings, clusters)
        left_out.update(others)
        check_known([*self.settings.clusters(), *self.proposed.clusters()], clusters, left_out)
        found = {
            option: rulesets(option, sets, self.settings, clusters) for option, sets in fits.items()
        }
        proposed = {name: self.proposed.of(name, rules) for name, rules in found[_PROPOSED].items()}
        topics = [each for each in self.topics if each[0].cluster not in left_out]
        return ClusterRules(
            found[_CURRENT],
            proposed,
            found[_OTHER],
            found[_EARLIER],
            existing(topics, clusters),
            histories,
            sorted(left_out),
        )


class ClusterRules(NamedTuple):
    """The rules by cluster, as `pipeline.interface.inputs.Inputs` has them.

    ``left_out`` are clusters that rules were given for and the log holds nothing of.
    """

    current: dict[str, Ruleset]
    proposed: dict[str, Ruleset]
    other: dict[str, Ruleset]
    earlier: dict[str, Ruleset]
    names: dict[str, dict[ResourceType, frozenset[str]]]
    histories: dict[str, AclHistory]
    left_out: Sequence[str] = ()


def read_rules(
    options: AuditOptions, describe: Describe | None, read_history: ReadHistory | None = None
) -> RuleFiles:
    """Read all ACLs and settings.

    ``describe`` is None where no broker can be asked, ``read_history`` where no store can be read.

    Raises OSError, PolicyError, PropertiesError and InputError.
    """
    given = {
        _CURRENT: options.acls,
        _PROPOSED: options.proposed,
        _OTHER: options.other,
        _EARLIER: options.earlier,
    }
    settings = Settings(
        options.super_users,
        options.broker_users,
        options.broker_listener,
        options.open_clusters,
        options.cidr,
        [(each.cluster, read_broker_properties(each.value)) for each in options.properties],
    )
    proposed = ProposedSettings(
        [
            (each.cluster, read_broker_properties(each.value))
            for each in options.proposed_properties
        ],
        options.proposed_super_users,
        options.proposed_broker_users,
        options.proposed_broker_listener,
        options.proposed_allow_everyone,
        options.proposed_cidr,
    )
    # With other settings alone, the ACLs that are proposed are those in force.
    read = cache(partial(_acl_set, command_config=options.command_config, describe=describe))
    sets = {option: [read(each) for each in values] for option, values in given.items()}
    topics = [(each, _topics(each.value)) for each in options.topics]
    client = options.command_config
    histories = [(each, _history(each.value, client, read_history)) for each in options.history]
    return RuleFiles(sets, settings, topics, proposed, histories)


def _history(url: str, command_config: str | None, read_history: ReadHistory | None) -> AclHistory:
    is_topic = _TOPIC.fullmatch(url) is not None
    if not is_topic and not url.startswith(_STORE):
        raise InputError(
            f"--history {url}: only stores keep a history; name {_STORE}FILE or "
            "kafka://HOST:PORT/TOPIC"
        )
    if read_history is None:
        raise InputError(f"--history {url}: only the command aclbroker reads stores")
    # What is for a cluster, or for a log that is a topic, is not for a file.
    return read_history(url, command_config if is_topic else None)


def _topics(path: str) -> frozenset[str]:
    try:
        found = read_topics(path)
    except NameListError as error:
        raise InputError(f"--topics {error}") from error
    if not found:
        raise InputError(f"--topics {path}: no topic is in it; name another file, or none")
    return found


def _acl_set(given: Given, *, command_config: str | None, describe: Describe | None) -> AclSet:
    if not given.value.startswith(_PLACES):
        policy = read_acls(given.value)
    elif describe is None:
        raise InputError(f"{given.value}: only the command aclbroker asks brokers; name a file")
    else:
        policy = describe(given.value, command_config)
    # They are brought in order here, since files are read while Spark starts.
    return AclSet(given.value, ordered(policy.acls), given.cluster, policy.cluster)
