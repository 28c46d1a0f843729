"""Values that stand elsewhere (KIP-297): read as Kafka does, and never shown in a message."""

from pathlib import Path

import pytest

from tests.config.conftest import LoadError, LoadText

CLASSES = "org.apache.kafka.common.config.provider."
PROVIDERS = (
    "listeners=PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://127.0.0.1:9093",
    "sasl.enabled.mechanisms=PLAIN",
    "config.providers=file , env,dir",
    f"config.providers.file.class={CLASSES}FileConfigProvider",
    f"config.providers.env.class={CLASSES}EnvVarConfigProvider",
    f"config.providers.dir.class={CLASSES}DirectoryConfigProvider",
)
JAAS = (
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
)
USERS = f'{JAAS}user_admin="{{}}";'
SECRET = "top-secret"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each provider has a secret named ``admin``."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "admin").write_text(f"{SECRET}\u0142")
    (tmp_path / "s" / "all.properties").write_text(f"admin: {SECRET}\\u0142\na\\:b=x\nn=70000\n")
    monkeypatch.setenv("admin", f"{SECRET}\u0142")
    return tmp_path


def password(load_text: LoadText, reference: str, *lines: str) -> str:
    config = load_text(*PROVIDERS, *lines, USERS.format(reference))
    [listener] = [each for each in config.listeners if each.name == "SASL_PLAINTEXT"]
    assert not any("config.providers" in warning for warning in config.warnings)
    found: str = listener.mechanisms["PLAIN"]["admin"]
    return found


@pytest.mark.parametrize(
    "reference", ["${file:s/all.properties:admin}", "${dir:s:admin}", "${env:admin}"]
)
def test_a_reference_is_replaced_by_what_it_stands_for(load_text: LoadText, reference: str):
    assert password(load_text, reference) == f"{SECRET}\u0142"
    assert password(load_text, f"x{reference}-{reference}y") == f"x{SECRET}\u0142-{SECRET}\u0142y"


def test_the_first_colons_separate_name_and_path(load_text: LoadText):
    assert password(load_text, "${file:s/all.properties:a:b}") == "x"


def test_what_is_no_reference_to_a_provider_stays(load_text: LoadText):
    for text in ("${vault:x:y}", "$admin", "${admin}", "${env:admin"):
        assert password(load_text, text) == text


def test_an_override_may_have_a_reference_too(load_text: LoadText):
    assert (
        load_text(*PROVIDERS, USERS.format("x"), node_id="${file:s/all.properties:n}").node_id
        == 70000
    )


def test_without_providers_a_reference_is_the_value_and_warned_of(load_text: LoadText):
    config = load_text(*PROVIDERS[:2], USERS.format("${file:s/all.properties:admin}"))
    [warning] = [each for each in config.warnings if "config.providers" in each]
    assert warning.startswith(
        "s.properties:3: 'listener.name.sasl_plaintext.plain.sasl.jaas.config"
    )


@pytest.mark.parametrize(
    ("reference", "reason", "lines"),
    [
        ("${file:s/all.properties:root}", "s/all.properties has no such key", []),
        ("${file:nowhere:root}", "nowhere cannot be read: No such file", []),
        ("${file::root}", "there is no path", []),
        ("${dir:s:root}", "s has no file of that name", []),
        ("${dir:s:../s/admin}", "s has no file of that name", []),
        ("${dir:s:.}", "s has no file of that name", []),
        ("${env:ADMIN}", "the environment has no such variable", []),
        ("${env:x:admin}", "write ${env:NAME}", []),
        ("${env:admin}", "does not match its name",
         ["config.providers.env.param.allowlist.pattern=admi"]),
        ("${env:admin}", "param.allowlist.pattern: at character 1: ",
         ["config.providers.env.param.allowlist.pattern=("]),
        ("${file:s/../t:admin}", "its path is not in allowed.paths",
         ["config.providers.file.param.allowed.paths={here}/s"]),
        ("${file:{here}/s2/x:admin}", "its path is not in allowed.paths",
         ["config.providers.file.param.allowed.paths={here}/s"]),
        ("${dir:s:admin}", "allowed.paths: s is no absolute path",
         ["config.providers.dir.param.allowed.paths=s"]),
        ("${file:s:admin}", "class='my.Provider' is not supported; allowed: org.apache.kafka",
         ["config.providers.file.class=my.Provider"]),
    ],
)  # fmt: skip
def test_a_reference_that_stands_for_nothing_stops_the_start(
    places: Path, load_error: LoadError, reference: str, reason: str, lines: list[str]
):
    reference, *lines = [each.replace("{here}", str(places)) for each in (reference, *lines)]
    [problem] = load_error(*PROVIDERS, *lines, USERS.format(reference)).problems
    assert problem.startswith(f"s.properties:{len(PROVIDERS) + len(lines) + 1}: ")
    assert f"{reference} stands for nothing: " in problem
    assert reason in problem
    assert SECRET not in problem


def test_what_is_allowed_may_be_limited(places: Path, load_text: LoadText):
    lines = [
        f"config.providers.file.param.allowed.paths=/usr, {places}/s",
        "config.providers.env.param.allowlist.pattern=adm.*",
    ]
    reference = f"${{file:{places}/s/all.properties:admin}}"
    assert password(load_text, reference, *lines) == f"{SECRET}\u0142"
    assert password(load_text, "${env:admin}", *lines) == f"{SECRET}\u0142"


def test_a_provider_that_is_not_supported_may_stand_there_unused(load_text: LoadText):
    config = load_text(
        *PROVIDERS[:2],
        "config.providers=vault,azure",
        "config.providers.vault.class=com.example.Vault",
        USERS.format("x"),
    )
    assert config.warnings == ("super.users is empty: only whom an ACL allows it can change ACLs",)


@pytest.mark.parametrize(
    "line",
    [
        "node.id=${env:admin}",
        "super.users=${env:admin}",
        "listeners=${env:admin}",
        "aclbroker.metrics.address=${env:admin}",
        "ssl.principal.mapping.rules=${env:admin}",
        "max.connections.per.ip.overrides=${env:admin}",
        "listener.security.protocol.map=${env:admin}",
        "principal.builder.class=${env:admin}",
        f"{JAAS}${{env:admin}};",
    ],
)
def test_no_message_holds_what_a_reference_stands_for(load_error: LoadError, line: str):
    error = load_error(*PROVIDERS, USERS.format("x"), line)
    assert error.problems
    assert SECRET not in "\n".join((*error.problems, *error.warnings))
