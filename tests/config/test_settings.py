"""Single settings: defaults, values, messages, names that are unknown or of no effect."""

from pathlib import Path

import pytest

from aclbroker.acl.settings import acl_limit, authorizer_settings
from aclbroker.broker.config import BUILT_IN_AUTHORIZER, NO_AUTHORIZER, ConfigError, load
from aclbroker.broker.config.docs import main, render
from tests.config.conftest import JAAS, LoadError, LoadText, super_users

MANY = 2**31 - 1
LOCAL = "listeners=PLAINTEXT://127.0.0.1:9092"
ADMIN = "super.users=User:admin"


def test_the_defaults_are_kafkas(load_text: LoadText):
    config = load_text(LOCAL)
    assert config.socket_request_max_bytes == 104857600
    assert config.sasl_server_max_receive_size == 524288
    assert config.connections_max_idle_ms == 600000
    assert (config.max_connections, config.max_connections_per_ip) == (MANY, MANY)
    assert config.socket_listen_backlog_size == 1024
    assert super_users(config) == frozenset()
    assert not authorizer_settings(config.properties).allow_everyone_if_no_acl_found


def test_the_defaults_of_our_own_settings(load_text: LoadText):
    config = load_text(LOCAL)
    assert (config.node_id, config.store) == (1, "sqlite:///aclbroker.db")
    assert (config.log_format, config.log_level) == (None, "info")
    assert (config.audit_format, config.audit_file, config.audit_level) == ("json", None, "denied")
    assert config.shutdown_timeout_ms == 10000


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", BUILT_IN_AUTHORIZER),
        ("authorizer.class.name=", NO_AUTHORIZER),
        (
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer ",
            BUILT_IN_AUTHORIZER,
        ),
        ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", BUILT_IN_AUTHORIZER),
        ("authorizer.class.name=kafka.security.auth.SimpleAclAuthorizer", BUILT_IN_AUTHORIZER),
        ("authorizer.class.name=my.package:Class", "my.package:Class"),
    ],
)
def test_only_an_explicitly_empty_class_means_no_authorizer(
    load_text: LoadText, line: str, expected: str
):
    config = load_text(LOCAL, ADMIN, line)
    assert config.authorizer_class_name == expected
    is_open = any("everything is allowed" in warning for warning in config.warnings)
    assert is_open == (expected == NO_AUTHORIZER)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["broker.id=7"], 7),
        (["node.id=8"], 8),
        (["node.id=9", "broker.id=9"], 9),
    ],
)
def test_node_id_and_broker_id_are_one_setting(
    load_text: LoadText, lines: list[str], expected: int
):
    assert load_text(LOCAL, *lines).node_id == expected


def test_node_id_and_broker_id_must_not_differ(load_error: LoadError):
    error = load_error(LOCAL, "node.id=1", "broker.id=2")
    assert "s.properties:2: node.id='1': differs from broker.id; allowed: 2" in str(error)


def test_limits_of_single_addresses_are_read_with_names_resolved(load_text: LoadText):
    config = load_text(
        LOCAL,
        "max.connections.per.ip=0",
        "max.connections.per.ip.overrides=127.0.0.1:200 , ::ffff:10.0.0.1:3, 0:0:0:0:0:0:0:1:4",
    )
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 200, "10.0.0.1": 3, "::1": 4}
    named = load_text(LOCAL, "max.connections.per.ip.overrides=localhost:5")
    assert set(named.max_connections_per_ip_overrides) <= {"127.0.0.1", "::1"}
    assert set(named.max_connections_per_ip_overrides.values()) == {5}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("off", "off"), ("OFF", "off"), ("INFO", "denied"), ("DEBUG", "all"), ("Trace", "trace"),
    ],
)  # fmt: skip
def test_audit_levels_have_kafkas_names_too(load_text: LoadText, line: str, expected: str):
    assert load_text(LOCAL, f"aclbroker.audit.level={line}").audit_level == expected


@pytest.mark.parametrize(("line", "expected"), [("", None), ("0", 0), ("1000", 1000)])
def test_the_number_of_acls_is_limited_only_on_demand(
    load_text: LoadText, line: str, expected: int | None
):
    config = load_text(LOCAL, f"aclbroker.acl.limit={line}")
    assert acl_limit(config.properties) == expected


@pytest.mark.parametrize(
    "store", ["sqlite:///acl.db", "sqlite:////var/lib/acl.db", "memory:", "memory://"]
)
def test_a_store_is_a_file_or_memory(load_text: LoadText, store: str):
    assert load_text(LOCAL, f"aclbroker.store={store}").store == store


def test_idle_connections_can_be_kept_for_ever(load_text: LoadText):
    assert load_text(LOCAL, "connections.max.idle.ms=-1").connections_max_idle_ms == -1


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("node.id", "x", "not an integer; allowed: an integer from 0 to 2147483647"),
        ("node.id", "1_0", "not an integer"),
        ("node.id", "", "not an integer"),
        ("broker.id", "-1", "out of range"),
        ("socket.request.max.bytes", "2147483648", "out of range"),
        ("connections.max.idle.ms", "0", "out of range; allowed: -1 (never) or an integer from 1"),
        ("allow.everyone.if.no.acl.found", "yes", "not a boolean; allowed: true, false"),
        ("super.users", "User:a,b;carol", "'carol' has no colon"),
        ("max.connections.per.ip", "0", "0 only beside max.connections.per.ip.overrides"),
        ("max.connections.per.ip.overrides", "no..host:1", "'no..host' cannot be resolved"),
        ("max.connections.per.ip.overrides", "127.0.0.1", "has no colon"),
        ("aclbroker.store", "postgresql://db", "not a store; allowed: sqlite:///PATH"),
        ("aclbroker.store", "sqlite:///", "not a store"),
        ("aclbroker.acl.limit", "-1", "or empty (no limit)"),
        ("aclbroker.store.history.max.changes", "", "not an integer; allowed: an integer from 0"),
        ("aclbroker.audit.level", "loud", "allowed: off, denied, all, trace, INFO, DEBUG"),
        ("aclbroker.audit.file.max.bytes", "1000", "allowed: 0 (never) or an integer from 1048576"),
        ("aclbroker.audit.max.bytes.per.second", "1", "0 (never) or an integer from 1024"),
        ("aclbroker.audit.rollup.seconds", "86401", "allowed: an integer from 0 to 86400"),
        ("aclbroker.audit.files.max.total.bytes", "5000000", "one file has no limit; allowed: 0"),
        ("aclbroker.log.format", "xml", "allowed: console, json"),
    ],
)
def test_an_invalid_value_is_named_with_its_place_and_what_is_allowed(
    load_text: LoadText, load_error: LoadError, name: str, value: str, reason: str
):
    in_file = load_error(LOCAL, "# a comment", "", f"{name} = {value}")
    assert f"s.properties:4: {name}={value!r}: " in str(in_file)
    assert reason in str(in_file)
    with pytest.raises(ConfigError) as overridden:
        load("s.properties", {name: value})
    assert f"--override: {name}={value!r}: " in str(overridden.value)


def test_room_for_less_than_two_audit_files_is_refused(load_text: LoadText, load_error: LoadError):
    one = "aclbroker.audit.file.max.bytes=2000000"
    total = "aclbroker.audit.files.max.total.bytes"
    error = load_error(LOCAL, one, f"{total}=3999999")
    assert "less than two files; allowed: 0, or at least 4000000" in str(error)
    assert load_text(LOCAL, one, f"{total}=4000000").audit_files_max_total_bytes == 4_000_000


def test_all_problems_are_told_at_once(load_error: LoadError):
    error = load_error("listeners=SSL://:9092", "node.id=x", "aclbroker.acl.host.cidr=1")
    assert len(error.problems) == 3


def test_lines_are_counted_through_continuations_and_all_line_ends(tmp_path: Path):
    file = tmp_path / "s.properties"
    file.write_bytes(b"# one\r\nsuper.users=User:a;\\\r\n  User:b\rbroker.id=1\nnode.id=x\n")
    with pytest.raises(ConfigError) as error:
        load(str(file))
    assert str(error.value).startswith(f"{file}:5: node.id='x'")


def test_an_override_wins_and_is_taken_without_the_escapes_of_a_file(load_text: LoadText):
    config = load_text(LOCAL, "super.users=User:a", super_users="User:a\\u0062 ")
    assert super_users(config) == {"User:a\\u0062"}


def test_a_name_that_is_there_twice_is_warned_of_and_the_last_counts(load_text: LoadText):
    config = load_text(LOCAL, "super.users=User:a", "super.users=User:b")
    assert super_users(config) == {"User:b"}
    assert config.warnings == (
        "s.properties:3: 'super.users' was already set at s.properties:2; the last one counts",
    )


def test_bytes_beyond_ascii_are_read_as_java_does_and_warned_of(load_text: LoadText):
    config = load_text(LOCAL, "super.users=User:J\xf6rg;User:\\u0141ucja")
    assert super_users(config) == {"User:J\xf6rg", "User:\u0141ucja"}
    [warning] = config.warnings
    assert warning.startswith("s.properties:2: 'super.users' holds bytes beyond ASCII")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("super.users=User:\\u12", "s.properties:2: a \\u is not followed by four"),
        ("super.users=User:\\ud800", "s.properties:2: 'super.users' holds half of a surrogate"),
    ],
)
def test_an_escape_that_is_none_is_refused(load_error: LoadError, line: str, reason: str):
    assert reason in str(load_error(LOCAL, line))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path):
    with pytest.raises(ConfigError, match="nowhere: cannot be read: No such file"):
        load(str(tmp_path / "nowhere"))


def test_an_unknown_name_is_a_warning_with_the_nearest_known_name(load_text: LoadText):
    config = load_text(
        LOCAL,
        ADMIN,
        "super.user=User:b",
        "aclbroker.audit.levle=all",
        "listener.name.plaintext.max.conections=3",
        "something.else=1",
    )
    assert config.warnings == (
        "s.properties:3: 'super.user': unknown setting; did you mean super.users?",
        "s.properties:4: 'aclbroker.audit.levle': unknown setting; "
        "did you mean aclbroker.audit.level?",
        "s.properties:5: 'listener.name.plaintext.max.conections': unknown setting; "
        "did you mean listener.name.plaintext.max.connections?",
        "s.properties:6: 'something.else': unknown setting",
    )


def test_kafkas_settings_without_effect_share_one_warning(load_text: LoadText):
    config = load_text(
        LOCAL,
        ADMIN,
        "process.roles=broker,controller",
        "log.dirs=/var/kafka",
        "zookeeper.connect=zk:2181",
        "delegation.token.master.key=top-secret",
        "listener.name.plaintext.ssl.provider=top-secret",
        "rsm.config.bucket=b",
    )
    assert config.warnings == (
        "settings of Kafka that have no effect here: delegation.token.master.key, "
        "listener.name.plaintext.ssl.provider, log.dirs, process.roles, rsm.config.bucket, "
        "zookeeper.connect",
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("listener.name.PLAINTEXT.max.connections", "prefixes are listener.name.plaintext."),
        ("listener.name.plaintext.node.id", "write node.id"),
        ("plain.sasl.jaas.config", "write listener.name.<listener>.plain.sasl.jaas.config"),
        ("sasl.jaas.config", "write listener.name.<listener>.plain.sasl.jaas.config"),
        (
            "listener.name.plaintext.sasl.jaas.config",
            "write listener.name.plaintext.plain.sasl.jaas.config",
        ),
    ],
)
def test_a_setting_in_the_wrong_place_is_a_warning_that_says_the_right_one(
    load_text: LoadText, name: str, hint: str
):
    [warning] = load_text(LOCAL, ADMIN, f"{name}=1").warnings
    assert warning.startswith(f"s.properties:3: {name!r}: no effect")
    assert warning.endswith(hint)


def test_without_a_file_only_this_machine_is_served_and_may_do_everything():
    config = load()
    [listener] = config.listeners
    assert (listener.host, listener.port) == ("127.0.0.1", 9092)
    assert super_users(config) == {"User:ANONYMOUS"}
    [warning] = config.warnings
    assert "PLAINTEXT://127.0.0.1:9092 with super.users=User:ANONYMOUS" in warning


@pytest.mark.parametrize(
    "listeners", ["PLAINTEXT://:9092", "PLAINTEXT://10.0.0.1:9092", "PLAINTEXT://example.org:9092"]
)
def test_without_a_file_other_machines_are_served_only_with_chosen_super_users(listeners: str):
    with pytest.raises(ConfigError) as error:
        load(None, {"listeners": listeners})
    assert str(error.value).startswith(f"--override: listeners={listeners!r}: without a file")
    config = load(None, {"listeners": listeners, "super.users": "User:admin"})
    assert super_users(config) == {"User:admin"}


@pytest.mark.parametrize("host", ["localhost", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]"])
def test_without_a_file_any_loopback_address_will_do(host: str):
    config = load(None, {"listeners": f"PLAINTEXT://{host}:0"})
    assert super_users(config) == {"User:ANONYMOUS"}


def test_doors_that_a_file_leaves_open_or_shut_are_warned_of(load_text: LoadText):
    shut = load_text(LOCAL)
    assert shut.warnings == ("super.users is empty: only whom an ACL allows it can change ACLs",)
    is_open = load_text(
        "listeners=PLAINTEXT://:9092,SASL_PLAINTEXT://:9093",
        "sasl.enabled.mechanisms=PLAIN",
        JAAS,
        "super.users=User:ANONYMOUS",
    )
    [warning] = is_open.warnings
    assert warning.endswith("whoever reaches listener PLAINTEXT may do anything")


def test_a_mistake_that_concerns_several_listeners_is_told_once(load_error: LoadError):
    error = load_error(
        "listeners=PLAINTEXT://:9092,OTHER://:9093",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "ssl.client.auth=maybe",
    )
    assert len(error.problems) == 1


def test_the_tables_of_the_documentation_are_those_of_the_program():
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    text = page.read_text()
    assert "| `aclbroker.store` |" in text
    command = ".venv/bin/python -m aclbroker.broker.config.docs docs/configuration.md"
    assert render(text) == text, f"run: {command}"


def test_the_tables_of_the_documentation_can_be_made_anew(tmp_path: Path):
    page = tmp_path / "configuration.md"
    page.write_text("before\n<!-- tables begin -->\nold\n<!-- tables end -->\nafter\n")
    main(str(page))
    text = page.read_text()
    assert text.startswith("before\n<!-- tables begin -->\n\n## ")
    assert text.endswith("|\n\n<!-- tables end -->\nafter\n")
    assert "old\n" not in text
