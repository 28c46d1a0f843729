"""Logins to ZooKeeper, whom its nodes belong to, and TLS, with what Kafka makes there beside it."""

import asyncio
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from structlog.testing import capture_logs

from aclbroker.broker.stores import AclStore, StoreError
from aclbroker.cli.acls.command import AclsCommand
from tests.acl.examples import READ, allow, deny
from tests.stores.following import Followed, loaded
from tests.stores.origins import ORIGIN
from tests.support.certificates import PASSWORD, Authority, pkcs12_truststore
from tests.support.kafka import free_ports
from tests.support.zookeeper import Zookeeper, acl_command, running_zookeeper
from tests.zookeeper.opening import opened, store_at

LOGIN = "org.apache.zookeeper.server.auth.DigestLoginModule"
JAAS = f'{LOGIN} required username="kafka" password="kafka-secret";'
SERVER_JAAS = f'Server {{ {LOGIN} required user_kafka="kafka-secret"; }};\n'
AS_KAFKA = {"aclbroker_zookeeper_sasl_jaas_config": JAAS, "zookeeper_set_acl": "true"}
LOGGED_IN = {("sasl", "kafka", 31), ("world", "anyone", 1)}
OPEN = {("world", "anyone", 31)}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zookeeper]:
    """A ZooKeeper where one can log in."""
    directory = tmp_path_factory.mktemp("guarded")
    file = directory / "server.jaas"
    file.write_text(SERVER_JAAS)
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    flag = f"-Djava.security.auth.login.config={file}"
    with running_zookeeper(directory, {"authProvider.1": provider}, flag) as running:
        yield running


def owners(address: str, *paths: str) -> list[set[tuple[str, str, int]]]:
    login = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": "kafka-secret"}
    client = KazooClient(address, sasl_options=login)
    client.start()
    found = [client.get_acls(path)[0] for path in paths]
    client.stop()
    client.close()
    return [{(acl.id.scheme, acl.id.id, acl.perms) for acl in each} for each in found]


async def test_nodes_belong_to_who_is_logged_in_as_those_of_kafka_do(guarded, java_directory):
    connect = f"{guarded.address}/ours"
    jaas = java_directory / "client.jaas"
    jaas.write_text(f"Client {{ {JAAS} }};\n")
    async with opened(connect, **AS_KAFKA) as store, Followed(store) as followed:
        await store.apply([allow()], [], ORIGIN)
        await store.apply_records("scram", {"alice": "secret"}, [], ORIGIN)
        paths = (
            "/ours",
            "/ours/kafka-acl",
            "/ours/kafka-acl/Topic",
            "/ours/kafka-acl/Topic/orders",
        )
        assert owners(guarded.address, *paths) == [LOGGED_IN] * 4
        [records] = owners(guarded.address, "/ours/aclbroker/records/scram/alice")
        assert records == {("sasl", "kafka", 31)}
        add = ("--add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "orders")
        said = await asyncio.to_thread(acl_command, java_directory, connect, *add, jaas=jaas)
        assert "Error" not in said
        bob = allow("User:bob", READ)
        await followed.until(lambda: followed.acls == {allow(), bob})
        await store.apply([], [bob], ORIGIN)
    theirs = f"{guarded.address}/theirs"
    assert "Error" not in await asyncio.to_thread(
        acl_command, java_directory, theirs, *add, jaas=jaas
    )
    assert (
        owners(guarded.address, *(path.replace("ours", "theirs") for path in paths))
        == [LOGGED_IN] * 4
    )
    async with opened(theirs, **AS_KAFKA) as store:
        await store.apply([deny()], [], ORIGIN)
        assert await loaded(store) == sorted([bob, deny()])


def test_our_command_logs_in_by_a_file_and_makes_nodes_of_the_login(guarded, tmp_path, capsys):
    place = f"zookeeper.connect={guarded.address}/by-command"
    file = tmp_path / "zookeeper.properties"
    file.write_text(f"aclbroker.zookeeper.sasl.jaas.config={JAAS}\n")
    words = ["--authorizer-properties", place]
    login = ["--zk-tls-config-file", str(file)]
    add = ["--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"]
    assert AclsCommand([*words, *login, *add]).run() == 0
    assert owners(guarded.address, "/by-command/kafka-acl/Topic/orders") == [LOGGED_IN]
    capsys.readouterr()
    assert AclsCommand([*words, *login, "--list"]).run() == 0
    assert "principal=User:alice" in capsys.readouterr().out
    quickly = ["--authorizer-properties", "zookeeper.connection.timeout.ms=3000"]
    assert AclsCommand([*words, *quickly, "--remove", "--force", "--topic", "orders"]).run() == 1
    refused = capsys.readouterr()
    assert "Error while executing ACL command: " in refused.out
    assert "secret" not in refused.out + refused.err
    assert AclsCommand([*words, *login, "--list"]).run() == 0
    assert "principal=User:alice" in capsys.readouterr().out


async def said_at_start(store: AclStore) -> str:
    """What the log tells, at first, of a store that waits at its start."""
    with capture_logs() as lines:
        opening = asyncio.create_task(store.open())
        async with asyncio.timeout(30):
            while not lines:
                await asyncio.sleep(0.05)
        opening.cancel()
        await asyncio.wait([opening])
        await store.close()
    return str(lines[0])


async def test_who_is_not_logged_in_is_told_that_nodes_belong_to_somebody_else(guarded):
    connect = f"{guarded.address}/of-somebody"
    async with opened(connect, **AS_KAFKA) as store:
        await store.apply([allow()], [], ORIGIN)
    assert "nodes belong to another user" in await said_at_start(store_at(connect))


async def test_a_wrong_password_is_told_and_tried_again(guarded):
    wrong = JAAS.replace("kafka-secret", "wrong")
    store = store_at(guarded.address, aclbroker_zookeeper_sasl_jaas_config=wrong)
    said = await said_at_start(store)
    assert "does not accept the login" in said
    assert "wrong" not in said


async def test_without_a_login_nodes_are_open_to_all(guarded):
    async with opened(f"{guarded.address}/open") as store:
        await store.apply([allow()], [], ORIGIN)
    assert owners(guarded.address, "/open/kafka-acl/Topic/orders") == [OPEN]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[str]:
    """The address of a ZooKeeper with TLS, which asks for certificates."""
    directory = tmp_path_factory.mktemp("tls")
    (directory / "server.p12").write_bytes(authority.issue().pkcs12())
    (directory / "trusted.p12").write_bytes(pkcs12_truststore(authority.certificate))
    [port] = free_ports(1)
    settings = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "ssl.keyStore.location": str(directory / "server.p12"),
        "ssl.keyStore.password": PASSWORD,
        "ssl.trustStore.location": str(directory / "trusted.p12"),
        "ssl.trustStore.password": PASSWORD,
    }
    with running_zookeeper(directory, settings):
        yield f"127.0.0.1:{port}"


def by_tls(directory, trusted: Authority, issuer: Authority) -> dict[str, str]:
    """The settings of a client who trusts an authority and has a certificate of another."""
    (directory / "client.p12").write_bytes(issuer.issue("CN=client").pkcs12())
    (directory / "trusted.p12").write_bytes(pkcs12_truststore(trusted.certificate))
    return {
        "zookeeper_ssl_client_enable": "true",
        "zookeeper_ssl_keystore_location": str(directory / "client.p12"),
        "zookeeper_ssl_keystore_password": PASSWORD,
        "zookeeper_ssl_keystore_type": "PKCS12",
        "zookeeper_ssl_truststore_location": str(directory / "trusted.p12"),
        "zookeeper_ssl_truststore_password": PASSWORD,
        "zookeeper_ssl_truststore_type": "PKCS12",
    }


async def test_zookeeper_is_reached_by_tls(tls, authority, tmp_path):
    many = [allow(name=f"topic-{number}") for number in range(500)]
    async with opened(f"{tls}/tls", **by_tls(tmp_path, authority, authority)) as store:
        async with Followed(store) as followed:
            await store.apply(many, [], ORIGIN)
            await followed.until(lambda: followed.acls == set(many))
        assert await loaded(store) == sorted(many)
    async with opened(f"{tls}/tls", **by_tls(tmp_path, authority, authority)) as store:
        assert await loaded(store) == sorted(many)


def test_our_command_reaches_zookeeper_by_the_tls_of_a_file(tls, authority, tmp_path, capsys):
    file = tmp_path / "tls.properties"
    settings = {
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        **{
            key.replace("_", "."): each
            for key, each in by_tls(tmp_path, authority, authority).items()
        },
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    place = ["--authorizer-properties", f"zookeeper.connect={tls}/by-command"]
    words = [*place, "--zk-tls-config-file", str(file)]
    assert AclsCommand([*words, "--add", "--allow-principal", "User:a", "--topic", "t"]).run() == 0
    capsys.readouterr()
    assert AclsCommand([*words, "--list"]).run() == 0
    assert "principal=User:a" in capsys.readouterr().out


async def test_a_zookeeper_whose_certificate_is_not_trusted_is_not_used(tls, authority, tmp_path):
    stranger = Authority("Another CA")
    store = store_at(tls, **by_tls(tmp_path, stranger, authority))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await store.open()
    await store.close()


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"zookeeper_set_acl": "true"}, "names no user"),
        ({"zookeeper_set_acl": "maybe"}, "true or false"),
        ({"zookeeper_session_timeout_ms": "0"}, "milliseconds"),
        ({"authorizer_zookeeper_session_timeout_ms": "x"}, "milliseconds"),
        ({"aclbroker_zookeeper_sasl_jaas_config": "x"}, LOGIN),
        ({"aclbroker_zookeeper_sasl_jaas_config": 'other.Module required a="b";'}, LOGIN),
        (
            {
                "zookeeper_ssl_client_enable": "true",
                "zookeeper_ssl_truststore_location": "/nowhere",
            },
            "zookeeper.ssl.truststore.location",
        ),
        (
            {"zookeeper_ssl_client_enable": "true", "zookeeper_ssl_crl_enable": "true"},
            "cannot do that",
        ),
    ],
)
def test_a_bad_setting_is_named(properties, said):
    with pytest.raises(StoreError, match=said):
        store_at("localhost:2181", **properties)


@pytest.mark.parametrize(
    "connect", ["", "a b:2181", "host:0", "host:70000", "host:2181,", "host:2181/a//b", "h:1/a/.."]
)
def test_a_bad_place_is_told_with_the_form(connect):
    with pytest.raises(StoreError, match="HOST:PORT"):
        store_at(connect)


def test_places_have_a_default_port_and_a_chroot():
    store = store_at("a,b:1,[::1]:2/x/y/")
    assert store._settings.url == "zookeeper://a:2181,b:1,[::1]:2/x/y"
