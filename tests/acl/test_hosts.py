import pytest

from aclbroker.acl.hosts import (
    Subnet,
    SubnetSize,
    canonical,
    enclosing_subnets,
    host_fault,
    is_malformed_subnet,
    matches_nobody,
    subnet,
    without_zone,
)


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::A", "2001:db8:0:0:0:0:0:a"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:0A00:0001", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_all_ways_to_write_an_address_have_one_canonical_form(written, same):
    assert canonical(written) == canonical(same)


@pytest.mark.parametrize(
    "text", ["*", "", "localhost", "10.0.0.01", "10.0.0.256", "10.0.0.0/8", " ::1", "1", "é"]
)
def test_a_text_that_is_no_address_stays_as_it_is(text):
    assert canonical(text) == text


def test_the_zone_is_part_of_an_address():
    assert canonical("fe80::1%eth0") != canonical("fe80::1%eth1")


@pytest.mark.parametrize(
    ("address", "everywhere"),
    [
        ("fe80::1%eth0", "fe80::1"),
        ("fe80::1", "fe80::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("unix%socket", "unix%socket"),
        ("10.0.0.1%eth0", "10.0.0.1%eth0"),
        ("", ""),
    ],
)
def test_an_address_without_its_zone(address, everywhere):
    assert without_zone(canonical(address)) == everywhere


@pytest.mark.parametrize(
    ("cidr", "inside", "outside"),
    [
        ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
        ("10.1.2.3/16", "10.1.0.0", "10.0.255.255"),
        ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
        ("0.0.0.0/0", "255.255.255.255", "::"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
        ("::/0", "::1", "1.2.3.4"),
        ("::ffff:10.1.0.0/112", "10.1.255.7", "10.2.0.0"),
        ("10.1.0.0/16", "::ffff:10.1.3.4", "::ffff:10.2.3.4"),
        ("fe80::/10", "fe80::1%eth0", "fd80::1"),
    ],
)
def test_an_address_lies_in_the_subnets_around_it(cidr, inside, outside):
    found = subnet(cidr)
    assert found is not None
    assert enclosing_subnets(inside, [found.size]) == [found]
    assert found not in enclosing_subnets(outside, [found.size])


@pytest.mark.parametrize(
    "text",
    ["10.0.0.1", "*", "", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "10.0.0.0/-1", "/8",
     "10.0/8", "x/8", "10.0.0.0/8/8", "10.0.0.0/" + "9" * 5000, "10.0.0.0/²"],
)  # fmt: skip
def test_only_cidr_notation_names_a_subnet(text):
    assert subnet(text) is None


def test_a_peer_without_an_address_lies_in_no_subnet():
    sizes = [SubnetSize(4, 0), SubnetSize(6, 0)]
    assert enclosing_subnets("unix socket", sizes) == []
    assert enclosing_subnets("1.2.3.4", sizes) == [Subnet(SubnetSize(4, 0), 0)]


@pytest.mark.parametrize(
    ("host", "nobody"),
    [
        ("*", False),
        ("10.0.0.1", False),
        ("0:0::1", False),
        ("fe80::1%eth0", False),
        ("10.0.0.0/8", False),
        ("::/0", False),
        ("127.0.0.0/33", True),
        ("10.0.0.1 ", True),
        (" *", True),
        ("010.0.0.1", True),
        ("localhost", True),
        ("", True),
    ],
)
def test_a_host_that_is_neither_an_address_nor_a_subnet_matches_nobody(host: str, nobody: bool):
    assert matches_nobody(host) is nobody


@pytest.mark.parametrize(
    ("host", "without_subnets", "with_subnets"),
    [
        ("*", True, True),
        ("10.0.0.1", True, True),
        ("0:0:0:0:0:0:0:1", True, True),
        ("10.0.0.0/8", False, True),
        ("::ffff:10.0.0.0/104", False, True),
        ("10.0.0.0/33", False, False),
        ("a.example", False, False),
        ("", False, False),
    ],
)
def test_a_host_that_no_client_can_have_has_a_fault(
    host: str, without_subnets: bool, with_subnets: bool
) -> None:
    assert (host_fault(host, cidr=False) is None) is without_subnets
    assert (host_fault(host, cidr=True) is None) is with_subnets


def test_a_host_with_a_slash_is_malformed_unless_it_is_a_subnet() -> None:
    hosts = ("10.0.0.0/33", "a/8", "10.0.0.0/", "10.0.0.0/8", "::/0", "a", "*")
    assert list(map(is_malformed_subnet, hosts)) == [True] * 3 + [False] * 4
