"""How clients log in at each listener: its mechanisms and its principal builder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from aclbroker.acl.groups import Groups
from aclbroker.broker.auth.login import Login, MechanismFactory
from aclbroker.broker.auth.principals import DefaultPrincipalBuilder, PrincipalBuilder
from aclbroker.broker.auth.sasl.access_token import TokenValidator
from aclbroker.broker.auth.sasl.gssapi_server import GssapiServer
from aclbroker.broker.auth.sasl.mechanism import Unavailable
from aclbroker.broker.auth.sasl.oauthbearer import OAuthBearerServer
from aclbroker.broker.auth.sasl.plain import PlainUsers
from aclbroker.broker.auth.sasl.scram import ScramServer
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.config import BUILT_IN_PRINCIPAL_BUILDER, Config, Listener, listener_prefix
from aclbroker.broker.config.oauthbearer import OAuthBearerSettings
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.logins.jwks_source import KeySources, Refreshing
from aclbroker.broker.plugins import make_plugin


class LoginServices(NamedTuple):
    """What mechanisms need besides their settings.

    ``credentials`` are those that the broker keeps, None if it keeps none. ``key_sources`` must be
    started before anybody logs in. ``groups`` returns the groups that there are now. If it
    ``waits`` for credentials, logins that need them are refused until then.
    """

    credentials: Credentials | None
    key_sources: KeySources
    groups: Callable[[], Groups] = Groups
    waits: bool = False


def logins(
    config: Config,
    services: LoginServices,
    credentials: Mapping[str, Credentials | None] = MappingProxyType({}),
) -> dict[str, Login]:
    """Return the `Login` of each listener, by its name.

    ``credentials`` has those of listeners that have others than ``services``; None are waited for.

    Raises ValueError for a principal builder that cannot be made or configured.
    """
    made = {}
    for listener in config.listeners:
        of_listener = services
        if listener.name in credentials:
            own = credentials[listener.name]
            of_listener = services._replace(credentials=own, waits=own is None)
        made[listener.name] = _login(config, listener, of_listener)
    return made


def with_credentials(login: Login, credentials: Credentials) -> Login:
    """Return a `Login` that has waited for these credentials; all else of it stays."""
    known = {
        each.mechanism_name: partial(ScramServer, each, credentials.look_up(each))
        for each in ScramMechanism
        if each.mechanism_name in login.mechanisms
    }
    return replace(login, mechanisms={**login.mechanisms, **known})


def _login(config: Config, listener: Listener, services: LoginServices) -> Login:
    return Login(
        listener.name,
        listener.security_protocol,
        _builder(config, listener),
        {
            name: _MECHANISMS[name](settings, services)
            for name, settings in listener.mechanisms.items()
        },
        listener.max_reauth_ms,
        services.groups,
    )


def _scram(mechanism: ScramMechanism, _settings: Any, services: LoginServices) -> MechanismFactory:
    if services.waits:
        return partial(Unavailable, "The users of SCRAM are not known yet. Try again.")
    if services.credentials is None:
        raise RuntimeError("SCRAM without a store of credentials")
    return partial(ScramServer, mechanism, services.credentials.look_up(mechanism))


def _oauthbearer(settings: OAuthBearerSettings, services: LoginServices) -> MechanismFactory:
    refreshing = Refreshing(
        settings.refresh_ms / 1000,
        settings.retry_backoff_ms / 1000,
        settings.retry_backoff_max_ms / 1000,
    )
    source = services.key_sources.add(settings.jwks_url, refreshing, settings.trusted)
    return partial(OAuthBearerServer, TokenValidator(settings.rules, source).validate)


_MECHANISMS: Final[Mapping[str, Callable[[Any, LoginServices], MechanismFactory]]] = {
    "PLAIN": lambda users, _: PlainUsers(users),
    **{each.mechanism_name: partial(_scram, each) for each in ScramMechanism},
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": lambda credentials, _: partial(GssapiServer, credentials),
}
"""By mechanism: makes its factory from its settings in `Listener.mechanisms`."""


def _builder(config: Config, listener: Listener) -> PrincipalBuilder:
    name = listener.principal_builder_class
    if name == BUILT_IN_PRINCIPAL_BUILDER:
        return DefaultPrincipalBuilder(_certificate_name(listener), _kerberos_name(listener))
    interface = "aclbroker.PrincipalBuilder"
    made: PrincipalBuilder = make_plugin("principal.builder.class", name, interface)
    # As Kafka gives them: the listener's own settings, without their prefix, before the broker's.
    prefix = listener_prefix(listener.name)
    own = {
        key.removeprefix(prefix): value
        for key, value in config.properties.items()
        if key.startswith(prefix)
    }
    made.configure({**config.properties, **own})
    return made


def _certificate_name(listener: Listener) -> Callable[[bytes], str]:
    rules = listener.ssl_principal_mapping_rules
    if rules is None:
        return _no_name
    from aclbroker.broker.auth.mapping.distinguished_name import name_of_certificate

    return lambda certificate: rules.name(name_of_certificate(certificate))


def _kerberos_name(listener: Listener) -> Callable[[str], str]:
    rules = listener.sasl_kerberos_principal_to_local_rules
    if rules is None or "GSSAPI" not in listener.mechanisms:
        return _no_name
    from aclbroker.broker.auth.mapping.kerberos_name import KerberosShortNamer
    from aclbroker.broker.auth.mapping.krb5_conf import default_realm

    try:
        realm = default_realm(os.environ)
    except OSError as error:
        raise ValueError(f"the default realm of Kerberos cannot be read: {error}") from error
    return KerberosShortNamer(rules, realm).short_name


def _no_name(name: object) -> str:
    raise ValueError("the listener has no rules for such names")
