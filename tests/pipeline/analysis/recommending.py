"""What is recommended for a log of a few requests, and what is told of its changes."""

from collections.abc import Collection, Iterator

from aclbroker.acl.bindings import AclPermission, ResourceType
from aclbroker.acl.reasoning.regions import Request
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import SessionUse
from aclbroker.pipeline.analysis.opened import Opened, name_of_session
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft, Evidence
from tests.pipeline.universe import Asking, is_of_any


def proposal(
    rules: Ruleset, log: Collection[Asking], prefixes: PrefixOptions | None = None
) -> Ruleset:
    """What is recommended for a log, of which the rules allow all."""
    return draft(rules, log, prefixes).rules(())


def draft(
    rules: Ruleset | None, log: Collection[Asking], prefixes: PrefixOptions | None = None
) -> Draft:
    """What is recommended for a log, before prefixes are chosen."""
    names: dict[ResourceType, set[str]] = {}
    for each in log:
        if not is_of_any(*each[2:]):
            names.setdefault(each.resource_type, set()).add(each.name)
    uses = [SessionUse(*each[:4], (each.name,)) for each in log]
    sessions = {each.principals for each in log}
    return Draft(Evidence(uses, sessions, names, {}), rules, prefixes)


def without_one(rules: Ruleset) -> Iterator[Ruleset]:
    """The rules without one of their ALLOWs, for each of these."""
    for acl in rules.acls:
        if acl.permission is AclPermission.ALLOW:
            yield rules.with_acls(set(rules.acls) - {acl})


def changes_of(found: Opened, request: Asking) -> list[bool]:
    """For each region of changed rights that has a request, whether it is opened."""
    one = Request(name_of_session(request.principals), *request[1:])
    return [each.is_opened for each in found.changes if one in each.region]
