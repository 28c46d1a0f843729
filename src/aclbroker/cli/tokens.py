"""The command `aclbroker tokens`: kafka-delegation-tokens.sh of Kafka 4.3.0, without a JVM.

Options and output are those of that script. What is printed of a token to whoever made it lets
anybody log in as its owner, as there.
"""

from __future__ import annotations

import argparse
import binascii
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from aclbroker.cli.cluster import on_cluster, told
from aclbroker.terminal import put

if TYPE_CHECKING:
    from aclbroker.broker.client.session import Session
    from aclbroker.broker.client.tokens import Token

_ACTIONS: Final = ("create", "renew", "expire", "describe")
_NEEDED: Final[Mapping[str, Sequence[str]]] = {
    "create": ("max_life_time_period",),
    "renew": ("hmac", "renew_time_period"),
    "expire": ("hmac", "expiry_time_period"),
}
_EXCLUDED: Final[Mapping[str, Sequence[str]]] = {
    "create": ("hmac", "renew_time_period", "expiry_time_period"),
    "renew": (
        "renewer_principal",
        "max_life_time_period",
        "expiry_time_period",
        "owner_principal",
    ),
    "expire": ("max_life_time_period", "renew_time_period", "owner_principal"),
    "describe": ("renew_time_period", "max_life_time_period", "hmac", "expiry_time_period"),
}
_COLUMNS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
_HEADINGS: Final = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER"),
    *("RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)
_LONG: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class TokensCommand:
    """Create, renew, expire or describe delegation tokens; periods are in milliseconds."""

    action: str
    bootstrap_server: str
    command_config: str
    owners: Sequence[str] = ()
    renewers: Sequence[str] = ()
    period: int = -1
    hmac: bytes = b""

    def run(self) -> int:
        """Run the command; return 0, or 1 and the reason on standard error if it failed."""
        do = {
            "create": self._create,
            "renew": self._renew,
            "expire": self._expire,
            "describe": self._describe,
        }[self.action]
        return on_cluster(self.bootstrap_server, self.command_config, do)

    def _create(self, session: Session) -> int:
        from aclbroker.broker.client.tokens import create_token

        told(
            f"Calling create token operation with renewers :{_listed(self.renewers)} , "
            f"max-life-time-period :{self.period}"
        )
        owner = self.owners[0] if self.owners else None
        token = create_token(session, self.renewers, self.period, owner)
        told(f"Created delegation token with tokenId : {token.token_id}")
        _print_tokens([token])
        return 0

    def _renew(self, session: Session) -> int:
        from aclbroker.broker.client.tokens import renew_token

        hmac = b64encode(self.hmac).decode()
        told(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{self.period}")
        expires = renew_token(session, self.hmac, self.period)
        told(f"Completed renew operation. New expiry date : {_date(expires)}")
        return 0

    def _expire(self, session: Session) -> int:
        from aclbroker.broker.client.tokens import expire_token

        hmac = b64encode(self.hmac).decode()
        told(
            f"Calling expire token operation with hmac :{hmac} , expire-time-period :{self.period}"
        )
        expires = expire_token(session, self.hmac, self.period)
        told(f"Completed expire operation. New expiry date : {_date(expires)}")
        return 0

    def _describe(self, session: Session) -> int:
        from aclbroker.broker.client.tokens import describe_tokens

        if self.owners:
            told(f"Calling describe token operation for owners: {_listed(self.owners)}")
        else:
            told("Calling describe token operation for current user.")
        tokens = describe_tokens(session, self.owners or None)
        # As there, no line ends between the number and the table.
        put(f"Total number of tokens : {len(tokens)}", end="")
        _print_tokens(tokens)
        return 0


def _print_tokens(tokens: Sequence[Token]) -> None:
    rows = [_HEADINGS, *map(_row, tokens)]
    for row in rows:
        cells = zip(row, _COLUMNS, strict=True)
        told("", " ".join(text.ljust(width) for text, width in cells))


def _row(token: Token) -> tuple[str, ...]:
    return (
        token.token_id,
        b64encode(token.hmac).decode(),
        token.owner,
        token.requester,
        _listed(token.renewers),
        _date(token.issued),
        _date(token.expires),
        _date(token.ends),
    )


def _listed(principals: Sequence[str]) -> str:
    return f"[{', '.join(principals)}]"


def _date(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(milliseconds / 1000))


def add_tokens(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`."""
    tokens: argparse.ArgumentParser = commands.add_parser(
        "tokens",
        help="create, renew, expire and describe delegation tokens, as kafka-delegation-tokens.sh",
        description="Create, renew, expire and describe delegation tokens of a cluster.",
        allow_abbrev=False,
    )
    actions = tokens.add_mutually_exclusive_group(required=True)
    for name in _ACTIONS:
        actions.add_argument(
            f"--{name}", dest="action", action="store_const", const=name, help=f"{name} tokens"
        )
    tokens.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        required=True,
        help="brokers of the cluster, which are tried in turn",
    )
    tokens.add_argument(
        "--command-config",
        metavar="FILE",
        required=True,
        help="a Kafka client's properties file, with the login that tokens are for",
    )
    for name, of in (("owner", "to create for, or to describe"), ("renewer", "who may renew it")):
        tokens.add_argument(
            f"--{name}-principal",
            metavar="TYPE:NAME",
            type=_principal,
            action="append",
            default=[],
            help=f"{of}; may be repeated",
        )
    for name, does in (
        ("max-life-time", "--create: after which no renewal helps"),
        ("renew-time", "--renew: for how long"),
        ("expiry-time", "--expire: until when; -1 is now"),
    ):
        tokens.add_argument(
            f"--{name}-period",
            metavar="MS",
            type=_period,
            help=f"for {does}, in milliseconds; -1 is the cluster's own setting",
        )
    tokens.add_argument("--hmac", metavar="BASE64", type=_hmac, help="the token's secret")
    tokens.set_defaults(refuse=tokens.error)


def tokens_command(options: argparse.Namespace) -> TokensCommand:
    """Return the command that parsed arguments describe; raises SystemExit as the parser does."""
    given = vars(options)
    for name in _NEEDED.get(options.action, ()):
        if given[name] is None:
            _refuse(options, f"--{options.action} needs {_option(name)}")
    for name in _EXCLUDED[options.action]:
        if given[name] not in (None, []):
            _refuse(options, f"{_option(name)} is not for --{options.action}")
    periods = ("max_life_time_period", "renew_time_period", "expiry_time_period")
    period = next((given[name] for name in periods if given[name] is not None), -1)
    return TokensCommand(
        options.action,
        options.bootstrap_server,
        options.command_config,
        tuple(options.owner_principal),
        tuple(options.renewer_principal),
        period,
        options.hmac or b"",
    )


def _refuse(options: argparse.Namespace, reason: str) -> NoReturn:
    options.refuse(reason)
    raise AssertionError("the parser has ended the process")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _principal(text: str) -> str:
    if ":" not in text:
        raise argparse.ArgumentTypeError("expected TYPE:NAME, such as User:alice")
    return text.strip()


def _period(text: str) -> int:
    try:
        period = int(text)
    except ValueError:
        period = _LONG.stop
    if period not in _LONG:
        raise argparse.ArgumentTypeError("expected a number of milliseconds")
    return period


def _hmac(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # The message leaves out the text, because it is a secret.
        raise argparse.ArgumentTypeError("expected a token's HMAC in base64") from None
