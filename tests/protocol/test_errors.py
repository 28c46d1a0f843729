"""What stands in error messages."""

from aclbroker.protocol.errors import shown_name


def test_a_long_name_is_shortened_with_its_length():
    assert shown_name("x" * 249) == "x" * 249
    assert shown_name("x" * 32_767) == "x" * 256 + "... (32767 characters)"
    assert shown_name(None) == "None"


def test_a_name_is_shortened_by_its_bytes():
    assert shown_name("é" * 128) == "é" * 128
    assert shown_name("é" * 129) == "é" * 128 + "... (129 characters)"
    assert shown_name("x" + "😀" * 64) == "x" + "😀" * 63 + "... (65 characters)"
