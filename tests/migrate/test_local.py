"""ACLs between places of this machine: what is planned, made, compared and refused."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding, AclPermission, PatternType
from aclbroker.acl.files.policy import Policy, read_policy, write_policy
from aclbroker.cli.migrate.places import open_place
from tests.acl.examples import READ, WRITE, allow, deny
from tests.migrate.running import contents, fill, migrate
from tests.support.broker import COMMAND
from tests.support.random_acls import KINDS, random_acls

ACLS = random_acls(Random(6), 10_000, unprintable=True)
LOCAL = ("file:{}/a.yaml", "sqlite:///{}/b.db", "file:{}/c.json", "file:{}/d.csv", "file:{}/e.yml")
OURS, DENIED, OTHER = allow("User:alice", READ), deny("User:bob", WRITE), allow("User:carol", WRITE)


def test_the_generated_acls_are_of_every_kind() -> None:
    kinds = {(acl.resource_type, acl.pattern_type, acl.operation, acl.permission) for acl in ACLS}
    assert kinds == set(KINDS)
    assert len(ACLS) == len(set(ACLS)) == 10_000


@pytest.mark.thorough
def test_thousands_of_acls_go_round_all_places_and_are_the_same_at_the_end(tmp_path: Path) -> None:
    places = [place.format(tmp_path) for place in LOCAL]
    fill(places[0], ACLS)
    for source, target in pairwise(places):
        assert migrate(source, target) == 0
        assert contents(target) == set(ACLS)
    assert (tmp_path / "a.yaml").read_bytes() == (tmp_path / "e.yml").read_bytes()


def test_what_a_listing_can_hold_comes_back_from_it(tmp_path: Path) -> None:
    acls = random_acls(Random(7), 3000)
    source = fill(f"file:{tmp_path}/a.json", acls)
    assert migrate(source, f"file:{tmp_path}/listing.txt") == 0
    assert migrate(f"file:{tmp_path}/listing.txt", f"sqlite:///{tmp_path}/b.db") == 0
    assert contents(f"sqlite:///{tmp_path}/b.db") == set(acls)


def test_the_plan_says_what_is_added_and_what_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/a.yaml", [OURS, DENIED])
    target = fill(f"file:{tmp_path}/b.yaml", [OTHER, OURS])
    assert migrate(source, target) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"From {source}: 2 ACLs, DENYs among them: 1",
        f"To {target}: 2 ACLs",
        "to add: 1 ACL; there already: 1",
        "+ DENY WRITE on TOPIC LITERAL orders to User:bob from *",
        "only in the target, stays without --prune: 1 ACL",
        "= ALLOW WRITE on TOPIC LITERAL orders to User:carol from *",
        "1 ACL added, 0 removed.",
        "Verified: the target has all 2 ACLs of the source.",
    ]
    assert contents(target) == {OURS, DENIED, OTHER}


def test_a_dry_run_shows_all_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/a.yaml", ACLS[:100])
    assert migrate(source, f"sqlite:///{tmp_path}/b.db", "--dry-run", "--prune") == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^\+ ", out, re.MULTILINE)) == 100
    assert out.endswith("Nothing was changed.\n")
    assert not (tmp_path / "b.db").exists()
    assert migrate(source, f"sqlite:///{tmp_path}/b.db") == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^\+ ", out, re.MULTILINE)) == 21
    assert "+ and 80 more, which --dry-run shows" in out


@pytest.mark.parametrize("target", ["file:{}/b.yaml", "sqlite:///{}/b.db"])
def test_with_prune_both_are_equal(tmp_path: Path, target: str) -> None:
    source = fill(f"file:{tmp_path}/a.yaml", ACLS[500:1500])
    target = fill(target.format(tmp_path), ACLS[:1000])
    assert migrate(source, target) == 0
    assert contents(target) == set(ACLS[:1500])
    assert migrate(source, target, "--prune") == 0
    assert contents(target) == set(ACLS[500:1500])


@pytest.mark.parametrize("name", ["empty.json", "empty.csv", "empty.yaml", "empty.db"])
def test_an_empty_source_takes_nothing_away_unless_it_is_accepted(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scheme = "sqlite:///" if name.endswith(".db") else "file:"
    source = fill(f"{scheme}{tmp_path}/{name}", [allow()])
    with open_place(source, is_target=True) as place:
        place.write([], [allow()])
    target = fill(f"file:{tmp_path}/target.csv", [allow(), deny()])
    assert migrate(source, target, "--prune") == 1
    assert "--accept-empty-source" in capsys.readouterr().err
    assert contents(target) == {allow(), deny()}
    assert migrate(source, target) == 0
    assert migrate(source, target, "--prune", "--accept-empty-source") == 0
    assert contents(target) == set()


def test_a_reader_that_goes_away_is_no_error_to_tell(tmp_path: Path) -> None:
    source = fill(f"file:{tmp_path}/source.csv", random_acls(Random(3), 3_000))
    words = [
        str(COMMAND),
        "migrate",
        "--dry-run",
        "--from",
        source,
        "--to",
        f"file:{tmp_path}/b.csv",
    ]
    read, write = os.pipe()
    with subprocess.Popen(words, stdout=write, stderr=subprocess.PIPE, text=True) as process:
        os.close(write)
        os.close(read)
        assert process.communicate()[1] == ""
    assert process.returncode == 1


def test_a_lost_allow_is_listed_and_the_others_are_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = allow("User:a, host=b", READ, "x")
    source = fill(f"file:{tmp_path}/a.yaml", [OURS, DENIED, lost])
    target = f"file:{tmp_path}/b.txt"
    for options in (["--dry-run"], [], []):
        assert migrate(source, target, *options) == 1
        told = capsys.readouterr()
        assert "1 ACL cannot be moved:" in told.err
        assert (
            'ALLOW READ on TOPIC LITERAL x to "User:a, host=b" from *: what kafka-acls.sh lists'
            in told.err
        )
    assert "Verified: the target has 2 of the 3 ACLs of the source." in told.out
    assert contents(target) == {OURS, DENIED}


def test_a_lost_deny_refuses_the_whole_move_unless_it_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = deny("User:a, host=b", READ)
    source = fill(f"file:{tmp_path}/a.yaml", [OURS, lost])
    target = f"file:{tmp_path}/b.txt"
    assert migrate(source, target) == 1
    assert "DENYs that the target cannot hold: 1." in capsys.readouterr().err
    assert not (tmp_path / "b.txt").exists()
    assert migrate(source, target, "--accept-lost-denies") == 1
    assert contents(target) == {OURS}


def test_an_acl_that_no_broker_would_create_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(f"file:{tmp_path}/a.json", [OURS])
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.json").write_text(text.replace("User:alice", "alice \\ud800"))
    assert migrate(f"file:{tmp_path}/a.json", f"file:{tmp_path}/b.yaml") == 1
    assert "must be written Type:name" in capsys.readouterr().err


def test_a_file_keeps_its_rights_its_link_and_its_cluster(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    write_policy(Policy([OTHER], "a-cluster"), real)
    real.chmod(0o640)
    owner = (1234, 1234) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(real, *owner)
    (tmp_path / "link.yaml").symlink_to(real)
    source = fill(f"file:{tmp_path}/a.csv", [OURS])
    assert migrate(source, f"file:{tmp_path}/link.yaml") == 0
    assert (tmp_path / "link.yaml").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert (real.stat().st_uid, real.stat().st_gid) == owner
    assert read_policy(real).cluster == "a-cluster"
    assert set(read_policy(real).acls) == {OURS, OTHER}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "link.yaml", "real.yaml"]


def test_urls_of_files_may_have_slashes(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    source = fill(f"file:{folder}/a.json", [OURS])
    target = f"file://{str(folder).replace(' ', '%20')}/b.yaml"
    assert migrate(source, target) == 0
    assert contents(f"file:{folder}/b.yaml") == {OURS}


def test_a_csv_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        b"\xef\xbb\xbfpermission,operation,principal,host,resource_type,pattern_type,resource_name"
        b'\r\nAllow,read,"User:a ""b""",*,Topic,literal,"x,y"\r\n'
    )
    [acl] = contents(f"file:{tmp_path}/a.csv")
    assert acl == allow('User:a "b"', READ, "x,y")
    assert (acl.permission, acl.pattern_type) == (AclPermission.ALLOW, PatternType.LITERAL)


def test_equal_sets_are_equal_files(tmp_path: Path) -> None:
    for end in ("yaml", "json", "csv", "txt"):
        acls = random_acls(Random(2), 500)
        fill(f"file:{tmp_path}/a.{end}", acls)
        fill(f"file:{tmp_path}/b.{end}", acls[250:])
        fill(f"file:{tmp_path}/b.{end}", list[AclBinding](acls[:250]))
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()
