"""What a whole run of tests records, enforces and tells at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.testing.acl_broker import AclBroker
    from aclbroker.testing.decisions import Question


class Session:
    """A run of tests, or the part of it that a worker does.

    ``record`` is the file that is written at the end, ``policy`` the one that is enforced. Raises
    OSError or ValueError if that cannot be read.
    """

    def __init__(
        self,
        record: Path | None = None,
        prefixes: Sequence[str] = (),
        policy: Path | None = None,
    ) -> None:
        self._record = record
        self._prefixes = prefixes
        self._policy = policy
        self._enforced: list[AclBinding] = []
        self._used: dict[Question, None] = {}
        self._missing: dict[str, None] = {}
        self._denied: dict[str, None] = {}
        self._left_out = 0
        self._had_broker = False
        self._logins = 0
        self._failed_logins: Counter[str] = Counter()
        self._passed = True
        self._deselected = 0
        self._why_partial = ""
        self._workers: set[str] = set()
        self._recorded = ""
        if policy is not None:
            from aclbroker.acl.files.reading import read_acls

            self._enforced = read_acls(policy).acls

    def broker(self, *args: Any, **options: Any) -> AclBroker:
        """Make a broker as `AclBroker` does, which records or enforces if the run does."""
        from aclbroker.testing.acl_broker import AclBroker

        if self._record is not None:
            options["records"] = True
        made = AclBroker(*args, **options)
        made.also(self._enforced)
        return made

    def ended(self, broker: AclBroker, *, failed: bool) -> None:
        """Take over what a broker has seen, and whether the test failed that had it.

        A test that passes has expected what it was denied, or its application has kept it to
        itself.
        """
        self._had_broker = True
        self._logins += broker.logins()
        self._failed_logins.update(broker.failed_logins())
        self._used |= dict.fromkeys(broker.used())
        fixes = dict.fromkeys(denial.fix for denial in broker.denials() if denial.fix)
        self._left_out += broker.denials_left_out
        if failed:
            self._missing |= fixes
        else:
            self._denied |= fixes

    def is_partial(self, why: str) -> None:
        """Note that not all tests ran, or that not all is known of what they did, and why."""
        self._why_partial = self._why_partial or why

    def deselected(self, count: int) -> None:
        """Note that the options leave out ``count`` tests."""
        self._deselected += count

    def expect(self, worker: str) -> None:
        """Note that another process has begun, which `add_json` is to be called for."""
        self._workers.add(worker)

    def to_json(self) -> dict[str, Any]:
        """Return what was seen, for another process."""
        return {
            "used": [
                [each.principal, each.host, int(each.operation), int(each.resource_type), each.name]
                for each in self._used
            ],
            "missing": list(self._missing),
            "denied": list(self._denied),
            "left_out": self._left_out,
            "had_broker": self._had_broker,
            "logins": self._logins,
            "failed_logins": dict(self._failed_logins),
            "deselected": self._deselected,
            "why_partial": self._why_partial,
        }

    def add_json(self, worker: str, output: dict[str, Any]) -> None:
        """Take over what another process has seen, as `to_json` tells it."""
        from aclbroker.acl.bindings import AclOperation, ResourceType
        from aclbroker.testing.decisions import Question

        for principal, host, operation, kind, name in output["used"]:
            found = Question(principal, host, AclOperation(operation), ResourceType(kind), name)
            self._used[found] = None
        self._missing |= dict.fromkeys(output["missing"])
        self._denied |= dict.fromkeys(output["denied"])
        self._left_out += output["left_out"]
        self._had_broker |= output["had_broker"]
        self._logins += output["logins"]
        self._failed_logins.update(output["failed_logins"])
        # Each worker leaves out the same tests.
        self._deselected = max(self._deselected, output["deselected"])
        self.is_partial(output["why_partial"])
        self._workers.discard(worker)

    def finish(self, *, passed: bool) -> bool:
        """Write the policy if the run records one; return False if the run must fail.

        ``passed`` is whether no test failed. A run that did not end by itself, or that used
        nothing, leaves the file as it was. A run that says nothing about the policy must fail: it
        recorded nothing, or enforced a policy on no client. Raises OSError.
        """
        self._passed = passed
        if self._workers:
            # What it had seen is lost with it.
            self.is_partial(f"worker {min(self._workers)} has not ended by itself")
        if self._record is None:
            return self._policy is None or not self._had_broker or self._logins > 0
        why = self._why_not_recorded(passed=passed)
        if why:
            self._recorded = f"not recorded: {why}, and {self._record} is as it was"
            # A run without brokers tests no ACLs, so it need not fail.
            return not self._had_broker
        from aclbroker.acl.files.policy import Policy, write_policy
        from aclbroker.testing.policies import smallest_policy

        self._recorded = f"not recorded: {self._record} cannot be written"
        acls = smallest_policy(self._used, self._prefixes)
        write_policy(Policy(sorted(acls)), self._record)
        left_out = [] if passed else ["tests that failed"]
        if self._deselected:
            left_out.append(f"{self._deselected} deselected tests")
        lacks = f", which may lack what {' and '.join(left_out)} would have done"
        lacks = lacks if left_out else ""
        self._recorded = f"recorded: {self._record}{lacks}"
        return True

    def _why_not_recorded(self, *, passed: bool) -> str:
        """Return why the policy cannot be recorded, "" if it can."""
        if self._why_partial:
            return self._why_partial
        if not self._had_broker:
            return "no test had a broker"
        if self._used:
            return ""
        if not passed:
            return "tests failed, and nothing was used"
        if self._logins:
            return "no client asked for anything that needs an ACL"
        return no_login(self._failed_logins)

    def summary(self) -> list[str]:
        """Return what to tell at the end; nothing if no test had a broker under a policy."""
        if self._record is not None:
            return [self._recorded] if self._recorded else []
        if self._policy is None or not self._had_broker:
            return []
        from aclbroker.acl.acl_text import acl_text
        from aclbroker.testing.policies import never_used

        lines = [f"missing in {self._policy}: {each}" for each in sorted(self._missing)]
        lines += [
            f"denied by {self._policy} in tests that passed: {each}"
            for each in sorted(self._denied.keys() - self._missing.keys())
        ]
        if self._left_out:
            lines.append(
                f"{self._policy}: {self._left_out} denials were not kept: more may be missing"
            )
        if not (self._logins or self._why_partial):
            return [*lines, f"{self._policy} was not tested: {no_login(self._failed_logins)}"]
        deselected = f"{self._deselected} tests were deselected" if self._deselected else ""
        why_unknown = self._why_partial or deselected or ("" if self._passed else "tests failed")
        if why_unknown:
            return [*lines, f"{self._policy}: {why_unknown}, so that more may be used of it"]
        lines += [
            f"never used in {self._policy}: {acl_text(acl)}"
            for acl in never_used(self._enforced, list(self._used))
        ]
        return lines or [f"{self._policy}: nothing is missing, and all of it was used"]


def no_login(failed: Mapping[str, int]) -> str:
    """Return in words that no client logged in, with how many logins failed and why."""
    reasons = "; ".join(f"{count} failed: {reason}" for reason, count in failed.items())
    return f"no client logged in ({reasons or 'none tried to'})"
