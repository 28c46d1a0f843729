"""The checksum of long bytes is the same as if it were worked out at once."""

import random

import pytest
from aiokafka.record.util import calc_crc32c

from aclbroker.broker.memory.checksum import crc32c


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 2 << 20, (3 << 20) + 12345])
def test_a_checksum_is_that_of_all_parts(size: int):
    data = random.Random(size).randbytes(size)  # any bytes will do
    assert crc32c(memoryview(data)) == calc_crc32c(data)
