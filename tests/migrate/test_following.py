"""With --follow what changes at the source comes to the target until somebody ends it."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.acls import create_acls, delete_acls, exactly
from aclbroker.cli.migrate.command import MigrateCommand
from aclbroker.cli.migrate.following import Follower
from aclbroker.cli.migrate.moving import difference
from aclbroker.cli.migrate.places import Contents, Place, PlaceError, open_place
from tests.acl.examples import READ, WRITE, allow, deny
from tests.conftest import StartBroker
from tests.kraft.log_files import batch, created, framed, write_log, write_snapshot
from tests.migrate.running import (
    change_store,
    contents,
    described,
    fill,
    following,
    migrate,
    migrating,
    session_with,
    wait_until_equal,
)
from tests.support.broker import Broker
from tests.support.kafka import free_ports
from tests.support.process import LoggedProcess, wait_for
from tests.support.random_acls import random_acls

OURS, DENIED, OTHER = allow("User:alice", READ), deny("User:bob", WRITE), allow("User:carol", WRITE)
LONG_AGO = 1_000_000_000


def replace(path: Path, text: str) -> None:
    """Put a file in the place of another at once, as one that nobody writes any more."""
    made = path.with_suffix(".new")
    made.write_text(text)
    os.utime(made, (LONG_AGO, LONG_AGO))
    made.replace(path)


def json_of(tmp_path: Path, acls: list[AclBinding]) -> str:
    """A file of ACLs, as text."""
    path = tmp_path / "made.json"
    path.unlink(missing_ok=True)
    fill(f"file:{path}", acls)
    return path.read_text()


def wait_until_told(process: LoggedProcess, text: str) -> None:
    wait_for(text, lambda: text in process.new_log_text() or None, 30)


@pytest.mark.parametrize("way", ["requests", "file"])
def test_changes_of_a_broker_come_by_its_requests_and_by_its_store(
    broker: Broker, tmp_path: Path, way: str
) -> None:
    address = broker.listeners["PLAINTEXT"]
    source = f"kafka+acls://{address}" if way == "requests" else f"sqlite:///{broker.store}"
    target = f"sqlite:///{tmp_path}/target.db"
    acls = random_acls(Random(3), 600)
    with session_with(address) as session:
        create_acls(session, acls[:200])
        with following(tmp_path / "log", source, target) as process:
            assert contents(target) == set(acls[:200])
            create_acls(session, acls[200:])
            delete_acls(session, [exactly(acl) for acl in acls[100:300]])
            wait_until_equal(target, [*acls[:100], *acls[300:]])
            process.running.send_signal(signal.SIGINT)
            assert process.running.wait(15) == 0
    assert contents(target) == {*acls[:100], *acls[300:]}
    # It was closed: a broker may use it.
    assert migrate(f"sqlite:///{tmp_path}/target.db", f"file:{tmp_path}/copy.json") == 0


def test_what_the_target_has_besides_stays_unless_the_source_had_it(tmp_path: Path) -> None:
    source, target = f"file:{tmp_path}/a.json", f"file:{tmp_path}/b.json"
    fill(target, [OTHER, DENIED])
    replace(tmp_path / "a.json", json_of(tmp_path, [OURS, DENIED]))
    with following(tmp_path / "log", source, target) as process:
        assert contents(target) == {OURS, DENIED, OTHER}
        replace(tmp_path / "a.json", json_of(tmp_path, [OURS]))
        wait_until_equal(target, [OURS, OTHER])
        assert process.terminate() == 0


def test_a_source_that_cannot_be_read_changes_nothing_and_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    source, target = f"file:{path}", f"file:{tmp_path}/b.json"
    whole = json_of(tmp_path, [OURS, DENIED])
    replace(path, whole)
    with following(tmp_path / "log", source, target) as process:
        path.unlink()
        wait_until_told(process, "No such file or directory")
        replace(path, whole[: len(whole) // 2])
        wait_until_told(process, "no JSON")
        replace(path, "")
        wait_until_told(process, "it is empty")
        assert contents(target) == {OURS, DENIED}
        replace(path, json_of(tmp_path, [OURS, DENIED, OTHER]))
        wait_until_equal(target, [OURS, DENIED, OTHER])
        wait_until_told(process, "It goes on.")
        process.running.send_signal(signal.SIGINT)
        assert process.running.wait(15) == 0
    told = process.log_text()
    assert told.count("it is tried again") == 3


def test_a_file_that_is_being_written_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    source, target = f"file:{path}", f"file:{tmp_path}/b.csv"
    fill(source, [OURS, DENIED])
    whole = path.read_bytes()
    replace(path, whole.decode())
    with following(tmp_path / "log", source, target) as process, path.open("wb") as file:
        # For a moment it is a whole file of less ACLs.
        head, _, rest = whole.partition(b"\n")
        file.write(head + b"\n")
        file.flush()
        wait_for_looks(process)
        assert contents(target) == {OURS, DENIED}
        file.write(rest + b"TOPIC,more,LITERAL,User:new,*,READ,ALLOW\n")
        file.flush()
        wait_until_equal(target, [OURS, DENIED, allow("User:new", READ, "more")])


def wait_for_looks(process: LoggedProcess) -> None:
    """Wait until the process has looked at its source some times: it has waited for it."""
    path = Path(f"/proc/{process.running.pid}/status")

    def waits() -> int:
        [line] = [
            each for each in path.read_text().splitlines() if each.startswith("voluntary_ctxt")
        ]
        return int(line.split()[1])

    first = waits()
    wait_for("some looks", lambda: waits() > first + 5 or None, 30)


def test_a_deny_that_the_target_cannot_hold_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    source, target = f"file:{path}", f"file:{tmp_path}/b.txt"
    lost = deny("User:a, host=b", READ)
    replace(path, json_of(tmp_path, [OURS]))
    with following(tmp_path / "log", source, target) as process:
        replace(path, json_of(tmp_path, [OURS, OTHER, lost]))
        assert process.running.wait(30) == 1
    assert contents(target) == {OURS}
    assert "DENYs that the target cannot hold: 1." in process.log_text()


def test_a_lost_allow_makes_the_status_of_a_followed_move_1(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    source, target = f"file:{path}", f"file:{tmp_path}/b.txt"
    lost = allow("User:a, host=b", READ)
    replace(path, json_of(tmp_path, [OURS, lost]))
    with following(tmp_path / "log", source, target) as process:
        replace(path, json_of(tmp_path, [OURS, lost, OTHER]))
        wait_until_equal(target, [OURS, OTHER])
        process.running.send_signal(signal.SIGINT)
        assert process.running.wait(15) == 1


@pytest.mark.thorough
def test_what_the_source_changes_while_it_is_copied_is_brought_over_as_well(
    broker: Broker, tmp_path: Path
) -> None:
    acls = random_acls(Random(12), 20_000, awkward=False)
    path, address = tmp_path / "a.json", broker.listeners["PLAINTEXT"]
    replace(path, json_of(tmp_path, acls))
    changed = json_of(tmp_path, [OURS, *acls[:-1]])
    words = ["--from", f"file:{path}", "--to", f"kafka+acls://{address}"]
    with migrating(tmp_path / "log", *words) as process:
        wait_for("the first ACLs", lambda: bool(described(address)) or None, 60)
        assert process.running.poll() is None
        replace(path, changed)
        assert process.running.wait(60) == 0
    assert described(address) == {OURS, *acls[:-1]}
    assert "1 ACL added, 1 removed." in process.log_text()


class Shaky(Place):
    """A target that makes a change and fails then, as one whose answer is lost."""

    fails = False

    def __init__(self, acls: Iterable[AclBinding]) -> None:
        super().__init__("shaky:")
        self.acls = set(acls)

    def read(self, *, may_be_new: bool = False) -> Contents:
        if self.fails:
            raise PlaceError("no answer")
        return Contents(list(self.acls))

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        self.acls = self.acls.difference(removed).union(added)
        if self.fails:
            raise PlaceError("no answer")
        return {}


@pytest.mark.parametrize(
    ("before", "meanwhile"), [((OURS,), (OURS, OTHER)), ((OURS, DENIED), (OURS,))]
)
def test_what_a_round_that_failed_has_changed_is_taken_back_with_its_source(
    before: tuple[AclBinding, ...], meanwhile: tuple[AclBinding, ...]
) -> None:
    source, target = Shaky(before), Shaky(before)
    follower = Follower(source, target, may_lose_denies=False)
    follower.first()
    source.acls, target.fails = set(meanwhile), True
    with pytest.raises(PlaceError, match="no answer"):
        follower.round()
    source.acls, target.fails = set(before), False
    assert follower.round()
    assert target.acls == set(before)
    assert not follower.round()


def test_a_source_that_becomes_empty_takes_nothing_along() -> None:
    source, target = Shaky([OURS, DENIED]), Shaky([OURS, DENIED])
    follower = Follower(source, target, may_lose_denies=False)
    follower.first()
    source.acls = set()
    with pytest.raises(PlaceError, match="no ACLs at all"):
        follower.round()
    assert target.acls == {OURS, DENIED}
    source.acls = {DENIED}
    assert follower.round()
    assert target.acls == {DENIED}


MANY = [DENIED, *(allow(f"User:{number}", READ) for number in range(99))]


def test_a_source_that_loses_most_of_its_acls_takes_nothing_along(tmp_path: Path) -> None:
    source, target = f"file:{tmp_path}/a.json", f"sqlite:///{tmp_path}/b.db"
    whole = json_of(tmp_path, MANY)
    replace(tmp_path / "a.json", whole)
    with following(tmp_path / "log", source, target) as process:
        for left, says in (
            (json_of(tmp_path, [OTHER]), "it has lost 100 of its 100 ACLs at once"),
            ('{"version": 1, "acls": []}', "it has no ACLs at all, and had 100"),
            (json_of(tmp_path, MANY[:30]), "it has lost 70 of its 100 ACLs at once"),
            (json_of(tmp_path, MANY[1:]), "it has lost ACLs, and still lacks 1 of its 100"),
        ):
            replace(tmp_path / "a.json", left)
            wait_until_told(process, f"the source may have lost its data: {says}")
            assert contents(target) == set(MANY)
        replace(tmp_path / "a.json", whole)
        wait_until_told(process, "It goes on.")
        replace(tmp_path / "a.json", json_of(tmp_path, [*MANY[20:], OTHER]))
        wait_until_equal(target, [*MANY[20:], OTHER])
        replace(tmp_path / "a.json", json_of(tmp_path, [OTHER]))
        wait_until_told(process, "it has lost 100 of its 101 ACLs at once, more than 50 %")
        assert process.terminate() == 1


def test_a_loss_is_confirmed_by_its_token_and_a_larger_share_by_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/a.json", [OTHER])
    target = fill(f"sqlite:///{tmp_path}/b.db", MANY)
    words = ["--prune", "--max-loss", "60"]
    assert migrate(source, target, *words) == 1
    told = capsys.readouterr().err
    assert "it has lost 100 of its 100 ACLs at once, more than 60 %" in told
    token = re.findall(r"--accept-loss=(\w+)$", told, re.MULTILINE)[0]
    assert migrate(source, target, *words, "--accept-loss=0123456789") == 1
    assert contents(target) == set(MANY)
    assert migrate(source, target, *words, f"--accept-loss={token}") == 0
    assert contents(target) == {OTHER}
    fill(target, MANY[:50])
    assert migrate(source, target, *words, f"--accept-loss={token}") == 1
    assert migrate(source, target, "--prune", "--max-loss=100") == 0
    assert contents(target) == {OTHER}


def test_another_source_at_the_same_place_is_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "a.db", tmp_path / "other.db"
    fill(f"sqlite:///{path}", MANY)
    fill(f"sqlite:///{other}", [*MANY[1:], OTHER])
    target = Shaky([])
    with open_place(f"sqlite:///{path}") as source:
        follower = Follower(source, target, may_lose_denies=False)
        target.acls = set(follower.first().acls)
        other.replace(path)
        with pytest.raises(PlaceError, match=r"its cluster id was .* and is .* now"):
            follower.round()
    assert target.acls == set(MANY)


def test_a_store_that_was_restored_from_a_backup_is_not_followed(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "backup.db"
    fill(f"sqlite:///{path}", MANY[1:])
    shutil.copy(path, backup)
    change_store(path, [DENIED], [])
    target = Shaky([])
    with open_place(f"sqlite:///{path}") as source:
        follower = Follower(source, target, may_lose_denies=False)
        target.acls = set(follower.first().acls)
        for each in tmp_path.glob("a.db*"):
            each.unlink()
        backup.replace(path)
        with pytest.raises(PlaceError, match="its position went back from 100 to 99"):
            follower.round()
    assert target.acls == set(MANY)


def test_a_metadata_log_of_another_cluster_or_an_older_one_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    log, properties = folder / f"{0:020}.log", tmp_path / "meta.properties"
    values = [framed(created(number, acl)) for number, acl in enumerate(MANY)]

    def write(count: int, epoch: int, name: str) -> None:
        log.write_bytes(batch(0, values[:count], epoch=epoch))
        properties.write_text(f"version=1\ncluster.id={name}\n")

    target = Shaky([])
    with open_place(f"kraft:///{tmp_path}") as source:
        for before, now, says in (
            ((99, 2, "a"), (100, 2, "b"), "its cluster id was a and is b now"),
            ((100, 2, "a"), (99, 2, "a"), "went back from 2, 100 to 2, 99"),
            ((100, 2, "a"), (99, 1, "a"), "went back from 2, 100 to 1, 99"),
        ):
            write(*before)
            follower = Follower(source, target, may_lose_denies=False)
            target.acls = kept = set(follower.first().acls)
            write(*now)
            with pytest.raises(PlaceError, match=says):
                follower.round()
            assert target.acls == kept
        # A leader of a new epoch cuts off only records that were never committed.
        write(100, 2, "a")
        follower = Follower(source, target, may_lose_denies=False)
        target.acls = set(follower.first().acls)
        write(99, 3, "a")
        assert follower.round()
        assert target.acls == set(MANY[:99])


def test_a_metadata_log_whose_segments_became_a_snapshot_meanwhile_is_read_whole(
    tmp_path: Path,
) -> None:
    values = [framed(created(number, acl)) for number, acl in enumerate(MANY)]
    folder = write_log(tmp_path / "__cluster_metadata-0", (0, [batch(0, values)]))
    target = Shaky([])
    with open_place(f"kraft:///{tmp_path}") as source:
        follower = Follower(source, target, may_lose_denies=False)
        target.acls = set(follower.first().acls)
        # No file has the records of the 20 removals any more.
        write_snapshot(folder, 120, values[20:])
        (folder / f"{0:020}.log").unlink()
        write_log(folder, (120, [batch(120, [framed(created(200, OTHER))])]))
        assert follower.round()
        assert target.acls == {*MANY[20:], OTHER}


def test_a_file_that_changes_in_mid_copy_is_brought_over_when_it_is_settled(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.json"
    replace(path, json_of(tmp_path, [OURS]))
    target = Shaky([])

    class Edited(Shaky):
        def write(
            self, added: Collection[AclBinding], removed: Collection[AclBinding]
        ) -> Mapping[AclBinding, str]:
            if not target.acls:
                path.write_text(json_of(tmp_path, [OURS, DENIED]))
            target.acls.update(added)
            return super().write(added, removed)

    with open_place(f"file:{path}") as source:
        assert MigrateCommand("a", "b")._move(source, Edited([])) == 0
    assert target.acls == {OURS, DENIED}


def test_who_ends_it_while_the_target_lacks_changes_is_told_by_the_status(tmp_path: Path) -> None:
    path, target = tmp_path / "a.json", tmp_path / "b.json"
    replace(path, json_of(tmp_path, [OURS]))
    with following(tmp_path / "log", f"file:{path}", f"file:{target}") as process:
        target.write_text("{")
        replace(path, json_of(tmp_path, [OURS, DENIED]))
        wait_until_told(process, "it is tried again")
        process.running.send_signal(signal.SIGTERM)
        assert process.running.wait(15) == 1


def test_what_others_change_at_the_target_is_found_by_the_comparison(tmp_path: Path) -> None:
    target = fill(f"file:{tmp_path}/a.json", [OURS, OTHER])
    with open_place(target, is_target=True) as place:
        assert not difference(place, [OTHER, OURS])
        assert difference(place, [OURS, DENIED]) == ({DENIED}, {OTHER})
        assert difference(place, [DENIED], gone=[OURS]) == ({DENIED}, {OURS})
        assert not difference(place, [OURS], gone=[DENIED])


@pytest.mark.broker_process
def test_a_cluster_that_goes_away_for_a_while_gets_what_it_missed(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    broker = start_broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    path = tmp_path / "a.json"
    replace(path, json_of(tmp_path, [OURS]))
    with following(tmp_path / "log", f"file:{path}", f"kafka+acls://127.0.0.1:{port}") as process:
        broker.kill()
        replace(path, json_of(tmp_path, [DENIED, OTHER]))
        wait_until_told(process, "it is tried again")
        broker.start()
        wait_until_equal(f"kafka+acls://127.0.0.1:{port}", [DENIED, OTHER])
        wait_until_told(process, "It goes on.")
        assert process.terminate() == 0
    assert process.log_text().count("it is tried again") == 1
