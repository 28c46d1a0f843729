"""Reads what the suite is told: of which keys to play cases, and whom to be.

The command config has the properties of the super user and of another user.

The properties without a prefix are the super user's. Those with the prefix ``conformance.user.``
belong to the other user, who plays all other roles. A property that is missing there is taken from
the super user, except for the credentials.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aclbroker.acl.bindings import WILDCARD_PRINCIPAL
from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.own_principal import ANONYMOUS, own_principal
from aclbroker.broker.client.settings import read_addresses, read_given, settings_of
from aclbroker.conformance.session import Login, Target
from aclbroker.protocol.messages import APIS, ApiKey

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings
    from aclbroker.broker.config.setting import Setting

USER_PREFIX: Final = "conformance.user."
_SERVERS: Final = "bootstrap.servers"
_PRINCIPAL: Final = "principal"
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_STORE_TYPE: Final = "ssl.keystore.type"
_CREDENTIALS: Final = (
    "sasl.jaas.config",
    "sasl.oauthbearer.client.credentials.",
    "ssl.key.password",
    "ssl.keystore.",
)
"""How the names of settings begin that prove who somebody is."""


def read_target(bootstrap_server: str, command_config: str) -> Target:
    """Return the broker and its two users; raises `ClientConfigError`."""
    given, warnings = read_given(command_config)
    of_super = {name: each for name, each in given.items() if not name.startswith(USER_PREFIX)}
    addresses = read_addresses(bootstrap_server, "--bootstrap-server")
    settings = settings_of(of_super, warnings)
    principal = own_principal(settings)
    super_user = Login(addresses, settings, principal or "the super user")
    user = _user(given, of_super, super_user)
    if user.name == principal:
        raise ClientConfigError(
            f"{principal} is the super user; {USER_PREFIX}sasl.jaas.config must name another user"
        )
    return Target(super_user, user, user.name)


def _user(
    given: Mapping[str, Setting], of_super: Mapping[str, Setting], super_user: Login
) -> Login:
    """Return the login of the other user, by its principal's name; raises `ClientConfigError`."""
    own = {
        name.removeprefix(USER_PREFIX): each
        for name, each in given.items()
        if name.startswith(USER_PREFIX)
    }
    servers, named = own.pop(_SERVERS, None), own.pop(_PRINCIPAL, None)
    inherited = {name: each for name, each in of_super.items() if not _is_credential(each)}
    try:
        settings = settings_of({**inherited, **own})
        addresses = super_user.addresses
        if servers is not None:
            addresses = read_addresses(servers.value, _SERVERS)
    except ClientConfigError as error:
        told = (f"with the settings {USER_PREFIX}*: {each}" for each in error.problems)
        raise ClientConfigError(*told) from None
    return Login(addresses, settings, _principal(settings, named))


def _principal(settings: ClientSettings, named: Setting | None) -> str:
    """Return whose ACLs the suite replaces; raises `ClientConfigError` if nothing tells it."""
    if settings.protocol == "PLAINTEXT":
        raise ClientConfigError(
            f"{USER_PREFIX}security.protocol must be SASL_PLAINTEXT, SASL_SSL or SSL: whose ACLs "
            "the suite replaces must log in"
        )
    principal = own_principal(settings) if named is None else named.value
    if principal is None:
        raise ClientConfigError(
            f"the settings {USER_PREFIX}* do not tell as which principal they log in; "
            f"{USER_PREFIX}{_PRINCIPAL}=User:NAME tells it, for certificates and tokens"
        )
    if ":" not in principal or principal in (ANONYMOUS, WILDCARD_PRINCIPAL):
        raise ClientConfigError(
            f"{USER_PREFIX}{_PRINCIPAL}={principal!r}: allowed: Type:name of one who logs in"
        )
    return principal


def _is_credential(setting: Setting) -> bool:
    # A URL of a file is the token; of a server it is where to get one.
    is_token = setting.name == _ENDPOINT and setting.value.lower().startswith("file:")
    return is_token or (setting.name.startswith(_CREDENTIALS) and setting.name != _STORE_TYPE)


def read_keys(names: Sequence[str]) -> Collection[ApiKey]:
    """Return the API keys of these names, all if there is none.

    Both ``CreateAcls`` and ``CREATE_ACLS`` name a key. Raises `ClientConfigError`.
    """
    known = {_plain(api.name): ApiKey(key) for key, api in APIS.items()}
    unknown = [name for name in names if _plain(name) not in known]
    if unknown:
        listed = ", ".join(sorted(api.name for api in APIS.values()))
        raise ClientConfigError(f"--api {unknown[0]} is unknown; expected one of {listed}")
    return {known[_plain(name)] for name in names or known}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
