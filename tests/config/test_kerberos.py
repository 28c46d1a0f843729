"""The settings of GSSAPI; those with a keytab that is there are tested with a KDC."""

import sys

import pytest

from tests.config.conftest import LoadError

SASL = "listeners=SASL_PLAINTEXT://127.0.0.1:9092"
NAME = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
KEYTAB = 'useKeyTab=true storeKey=true keyTab="/nowhere.keytab"'


@pytest.mark.parametrize(
    ("jaas", "reason"),
    [
        (f"{MODULE} required", "at the end: expected an option or ';'"),
        (f'x.Y required {KEYTAB} principal="kafka/host";', "the login module is not Krb5LoginMod"),
        (f'{MODULE} required principal="kafka/host";', "useKeyTab is not true"),
        (f'{MODULE} required useTicketCache=true principal="kafka/host";', "useKeyTab is not true"),
        (f"{MODULE} required {KEYTAB};", "there is no principal"),
        (f'{MODULE} required {KEYTAB} principal="*";', "there is no principal"),
    ],
)
def test_a_jaas_value_without_the_brokers_key_is_refused(
    load_error: LoadError, jaas: str, reason: str
):
    [problem] = load_error(SASL, f"{NAME}={jaas}").problems
    assert problem.startswith(f"s.properties:2: {NAME}: {reason}")
    assert f"allowed: {MODULE} required useKeyTab=true" in problem


def test_without_the_extra_the_start_says_what_to_install(
    load_error: LoadError, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    [problem] = load_error(SASL, f'{NAME}={MODULE} required {KEYTAB} principal="kafka/h";').problems
    assert "the package gssapi is not installed: pip install 'gssapi>=1.9'" in problem
    assert "libkrb5-dev" in problem


def test_a_service_name_that_is_not_the_principals_is_warned_of(load_error: LoadError):
    error = load_error(
        SASL,
        f'{NAME}={MODULE} required {KEYTAB} principal="broker/host@REALM";',
        "sasl.kerberos.service.name=kafka",
    )
    [warning] = error.warnings
    assert warning.startswith("s.properties:3: sasl.kerberos.service.name='kafka' is not the first")


def test_a_callback_handler_is_refused(load_error: LoadError):
    handler = "listener.name.sasl_plaintext.gssapi.sasl.server.callback.handler.class"
    error = load_error(
        SASL, f'{NAME}={MODULE} required {KEYTAB} principal="kafka/h";', f"{handler}=x.Y"
    )
    assert f"s.properties:3: {handler}='x.Y': a class that authorizes in another" in str(error)
