"""Writes properties files for the tests of the configuration."""

from collections.abc import Callable
from pathlib import Path

import pytest

from aclbroker.acl.settings import authorizer_settings
from aclbroker.broker.config import Config, ConfigError, load

JAAS = (
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="top-secret-1" user_alice="top-secret-2";'
)

LoadText = Callable[..., Config]
LoadError = Callable[..., ConfigError]


def super_users(config: Config) -> frozenset[str]:
    """Return the super users that an authorizer takes from a configuration."""
    return authorizer_settings(config.properties).super_users


@pytest.fixture
def load_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadText:
    """Loads lines as the file `s.properties` of the working directory, with overrides."""
    monkeypatch.chdir(tmp_path)

    def load_lines(*lines: str, **overrides: str) -> Config:
        Path("s.properties").write_text("\n".join(lines) + "\n", "iso-8859-1")
        names = {name.replace("_", "."): value for name, value in overrides.items()}
        return load("s.properties", names)

    return load_lines


@pytest.fixture
def load_error(load_text: LoadText) -> LoadError:
    """The error of loading lines, which must not be accepted."""

    def error_of(*lines: str, **overrides: str) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            load_text(*lines, **overrides)
        return caught.value

    return error_of
