"""The settings beside the ACLs, from a broker's server.properties."""

from pathlib import Path

import pytest

from aclbroker.pipeline.acls.broker_properties import (
    BrokerSettings,
    PropertiesError,
    read_broker_properties,
)


def read(tmp_path: Path, text: str) -> BrokerSettings:
    path = tmp_path / "server.properties"
    path.write_text(text, encoding="iso-8859-1")
    return read_broker_properties(str(path))


def test_settings_are_read_as_the_broker_reads_them(tmp_path: Path):
    found = read(
        tmp_path,
        "super.users = User:a; User:CN=b,\\\n  OU=c;;\n"
        "broker.users=User:one\nbroker.users=User:broker\n"
        "inter.broker.listener.name=internal\nsecurity.inter.broker.protocol=SASL_SSL\n"
        "allow.everyone.if.no.acl.found=TRUE \naclbroker.acl.host.cidr=true\n",
    )
    assert found == BrokerSettings(
        frozenset(["User:a", "User:CN=b,OU=c"]), frozenset(["User:broker"]), "INTERNAL", True, True
    )


def test_without_settings_nobody_is_exempt(tmp_path: Path):
    assert read(tmp_path, "node.id=1") == BrokerSettings(broker_listener="PLAINTEXT")
    found = read(tmp_path, "security.inter.broker.protocol=ssl")
    assert found.broker_listener == "SSL"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "super.users=User:a,b;c",
            "super.users='User:a,b;c': 'c' has no colon; it must be Type:name",
        ),
        (
            "allow.everyone.if.no.acl.found=yes",
            "allow.everyone.if.no.acl.found='yes': .*it must be true or false",
        ),
        ("super.users=\\u12", "hexadecimal"),
    ],
)
def test_a_value_that_is_none_is_refused(tmp_path: Path, text: str, said: str):
    with pytest.raises(PropertiesError, match=said) as error:
        read(tmp_path, text)
    assert "server.properties: " in str(error.value)
