"""What Kafka's own StandardAuthorizer decides, in a JVM of its own (benchmarks/java/Decider)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aclbroker.acl.authorizer import RuleKind
from aclbroker.pipeline.acls.ruleset import Ruleset
from benchmarks.peers import authorizer_loop
from tests.clients.drivers import LineProcess
from tests.pipeline.questions import Column, Questions
from tests.support.accounts import properties_text

_FLAGS = (
    "-XX:+UseSerialGC",
    "-Xmx1g",
    "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=trace",
)

# In the order of Decider.RULES, the last of which is number -1.
_WITHOUT_ACL = (RuleKind.SUPER_USER, RuleKind.DEFAULT_ALLOW, RuleKind.DEFAULT_DENY)


class Answers(NamedTuple):
    """Columns: 1 if it is allowed, else 0; and the number of the rule (see `rule_kind`)."""

    allowed: Column
    rule: Column


def rule_kinds(rule: Column) -> list[str]:
    """Return the kind of each rule; a number from 0 on is the position of the ACL that decided."""
    kinds = np.array([kind.value for kind in (RuleKind.MATCHING_ACL, *_WITHOUT_ACL)])
    return list(kinds[np.minimum(rule, 0)])


class KafkaAuthorizer:
    """The JVM, which decides under one set of rules after the other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        log = directory / "authorizer.log"
        # A busy machine takes minutes for 250,000 questions about 90,000 ACLs.
        self._loop = LineProcess(authorizer_loop(_FLAGS), log, within=600)

    def decide(self, rules: Ruleset, questions: Questions) -> Answers:
        """Return the decisions on all questions."""
        texts = {text: number for number, text in enumerate(questions.texts)}

        def number(text: str) -> int:
            return texts.setdefault(text, len(texts))

        acls = np.array(
            [(a[0], number(a[1]), a[2], number(a[3]), number(a[4]), a[5], a[6]) for a in rules.acls]
        )
        settings = {
            "super.users": ";".join(sorted(rules.super_users)),
            "allow.everyone.if.no.acl.found": str(rules.allow_everyone_if_no_acl_found).lower(),
        }
        (self._directory / "server.properties").write_text(properties_text(settings))
        self._write("acls", acls)
        self._write("questions", np.stack(questions[1:], axis=1))
        encoded = [text.encode() for text in texts]
        packed = b"".join(struct.pack(">i", len(text)) + text for text in encoded)
        (self._directory / "texts").write_bytes(packed)
        self._loop.ask(f"decide {self._directory}")
        answers = np.fromfile(self._directory / "answers", ">i4").reshape(-1, 2)
        return Answers(*answers.astype(np.int32).T)

    def close(self) -> None:
        """End the JVM."""
        self._loop.close()

    def _write(self, name: str, numbers: Column) -> None:
        numbers.astype(">i4").tofile(self._directory / name)
