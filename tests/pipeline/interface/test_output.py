"""Files that jobs write, on both engines."""

from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.acls.ruleset import ordered
from aclbroker.pipeline.interface.output import Output
from tests.pipeline.analysis.test_least_privilege import acls


def test_a_text_of_any_size_is_written_as_it_is(spark, tmp_path: Path) -> None:
    """It is longer than what is written at once, and its letters take several bytes."""
    output = Output(spark, str(tmp_path))
    lines = [f"Größe {number}\n" for number in range(200_000)]
    output.text("a/pieces.txt", iter(lines))
    output.text("a/whole.txt", "".join(lines))
    assert (tmp_path / "a" / "pieces.txt").read_text(encoding="utf-8") == "".join(lines)
    assert (tmp_path / "a" / "whole.txt").read_text(encoding="utf-8") == "".join(lines)
    output.text("a/whole.txt", "")
    assert [each.name for each in (tmp_path / "a").iterdir() if not each.stat().st_size] == [
        "whole.txt"
    ]


def test_a_set_is_written_with_the_commands_that_bring_it_about(spark, tmp_path: Path) -> None:
    kept, gone, new = (
        acls("allow READ topic t literal User:b"),
        acls("deny READ topic a literal User:a", "allow WRITE topic t literal User:b"),
        acls("allow READ topic a literal User:a"),
    )
    output = Output(spark, str(tmp_path))
    # Neither the order nor what is there twice matters.
    written = output.acls("set", {"c": [*kept, *new, *kept]}, current={"c": [*gone, *kept]})
    assert written == {
        "set.yaml": "2 ACLs of c, as a policy file",
        "set.sh": "kafka-acls.sh commands for c: 1 ACLs to add, 2 to remove",
    }
    assert ordered(parse_policy((tmp_path / "set.yaml").read_text()).acls) == ordered([*kept, *new])
    commands = [
        line for line in (tmp_path / "set.sh").read_text().splitlines() if " --add " in line
    ]
    assert len(commands) == 1
    assert "--allow-principal User:a" in commands[0]


def test_a_set_that_no_broker_would_take_leaves_the_files_as_they_were(
    spark, tmp_path: Path
) -> None:
    output = Output(spark, str(tmp_path))
    output.acls("set", {"c": acls("allow READ topic t literal User:b")})
    before = (tmp_path / "set.yaml").read_bytes()
    (bad,) = acls("allow READ topic t literal User:b")
    with pytest.raises(ValueError, match="principal"):
        output.acls("set", {"c": [bad._replace(principal="nobody")]})
    assert (tmp_path / "set.yaml").read_bytes() == before
