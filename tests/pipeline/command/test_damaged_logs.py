"""A proposal from a damaged or forged log denies no request that was really allowed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import parse_policy, policy_text
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.errors import InputError
from tests.pipeline.auditing import audited
from tests.pipeline.companies_at_random import Company

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {"unused": "unused/remaining.yaml", "recommend": "recommend/acls.yaml"}


def proposed(spark: SparkSession, job: str, company: Company, place: Path) -> Ruleset | None:
    """Return the rules that a job proposes; None if it proposes nothing."""
    log, acls = place / "kafka.log", place / "acls.yaml"
    log.write_bytes(company.log)
    acls.write_text("".join(policy_text(company.rules.acls, "c")))
    try:
        audited(spark, job, log, acls, place / "out", "--cluster", "c", "--min-coverage", "0")
    except InputError:
        return None
    return Ruleset(ordered(parse_policy((place / "out" / FILES[job]).read_text()).acls))


def broken_by(company: Company, rules: Ruleset) -> list[object]:
    """Return the real requests that were allowed, and that the given rules would deny."""
    return [
        each
        for each in set(company.asked)
        if company.allows(each, company.rules) and not company.allows(each, rules)
    ]


@pytest.mark.engines("local")
@pytest.mark.parametrize("job", FILES)
def test_nothing_that_was_asked_is_taken_away_whatever_of_the_log_cannot_be_read(
    spark: SparkSession, tmp_path: Path, job: str
) -> None:
    proposals = 0
    for seed in range(12):
        company = Company(seed)
        rules = proposed(spark, job, company, tmp_path)
        if rules is not None:
            proposals += len(rules.acls) < len(company.rules.acls)
            assert broken_by(company, rules) == [], seed
    assert proposals > 2
