"""Decides anew what was asked, with the broker's own authorizer core, under any sets of rules.

Only what differs to an authorizer is decided: each principal, operation and resource once, however
often it was asked. A host counts only if some ACL names it; all others are one to every ACL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.ruleset import Ruleset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RuleSets = Mapping[str, Mapping[str, Ruleset]]
"""Sets of rules by a name for each, such as ``current``; each a `Ruleset` by cluster."""


def asked(usage: DataFrame, sets: RuleSets) -> DataFrame:
    """Return one row for each question that differs to an authorizer, from the table of usage.

    The columns are ``cluster``, ``listener`` (null unless some rules have broker users),
    ``principal``, ``other_principals``, ``host`` (null for one that no ACL names), ``operation``,
    ``resource_type``, ``resource_name``, and of all the events that asked it: ``events``,
    ``allowed_events`` (how many of them were allowed), ``loud_events`` (how many did not only
    filter an answer), ``reference_count``, ``first_seen``, ``last_seen``, ``days``, and
    ``example_host``, one of their hosts.
    """
    raise NotImplementedError


def decided(questions: DataFrame, sets: RuleSets, *, explain: bool = False) -> DataFrame:
    """Return the questions with what each set of rules decides.

    For each name in ``sets`` there are the columns ``NAME_allowed`` (boolean) and ``NAME_rule`` (a
    value of `RuleKind`). With ``explain`` also ``NAME_allows`` and ``NAME_denies`` (array<int>):
    which ACLs allow and deny it, as positions in ``Ruleset.acls``, implications included; and where
    ``allow_everyone_if_no_acl_found`` holds, ``NAME_on_resource`` (array<int>, else null): all ACLs
    on the resource, whomever they name, since only without any of them the default applies.
    """
    raise NotImplementedError
