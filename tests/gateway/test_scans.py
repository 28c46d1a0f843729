"""The scans of Produce and Fetch find the same as the decoder, or leave the frame to it."""

from random import Random
from typing import Any

from aclbroker.protocol.compile import encode
from tests.gateway.random_frames import (
    KINDS,
    comparable,
    expected,
    mutated,
    random_frame,
    scan_of,
)
from tests.support.tables import examples

MUTATIONS_OF_EACH = 9


def differences(seed: int, count: int) -> tuple[list[str], int]:
    """Compare so many frames, most of them mutated; return the differences, and how many passed."""
    random = Random(seed)
    found, passed = [], 0
    for _ in range(count // (1 + MUTATIONS_OF_EACH)):
        kind, version, frame = random_frame(random)
        for data in (frame, *(mutated(random, frame) for _ in range(MUTATIONS_OF_EACH))):
            scanned = scan_of(kind, version)(data, 0, len(data))
            scanned = comparable(kind, version, scanned)
            passed += scanned is not None
            # None leaves the frame to the decoder.
            if scanned is not None and scanned != expected(kind, version, data):
                name = KINDS[kind][0].message.__name__
                found.append(f"seed {seed}: {name} v{version} {data.hex()}: {scanned}")
    return found, passed


def test_scans_find_what_the_decoder_finds():
    count = examples(200_000)
    found, passed = differences(count, count)
    assert found[:5] == []
    assert passed > count / 10


def test_most_messages_of_each_version_are_scanned():
    random = Random(1)
    for kind, (plan, versions, make, _) in enumerate(KINDS):
        for version in versions:
            frames = [encode(make(random, version), version) for _ in range(40)]
            scanned = [scan_of(kind, version)(frame, 0, len(frame)) for frame in frames]
            assert len(scanned) - scanned.count(None) > 10, (plan.message, version)


def test_a_scan_reads_a_frame_among_others():
    random = Random(2)
    for _ in range(500):
        kind, version, frame = random_frame(random)
        scan = scan_of(kind, version)
        among = b"\1\2\3" + frame + b"\0\5\0"
        found = scan(among, 3, 3 + len(frame))
        alone = scan(frame, 0, len(frame))
        assert comparable(kind, version, found) == comparable(kind, version, alone)
        # Frames that have arrived in parts are bytearrays; names in them are looked up.
        again = scan(bytearray(among), 3, 3 + len(frame))
        assert again == found
        assert _hashed(again) == _hashed(found)


def _hashed(found: Any) -> int:
    """Return a hash of everything that a scan has found."""
    if isinstance(found, list | tuple):
        return hash(tuple(map(_hashed, found)))
    return hash(found)
