"""The client's side of SCRAM, written from RFC 5802 for tests that send what no client would."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode


class ScramClient:
    """One exchange: `first`, then `final` of the server's answer, then `is_server` of the last."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        nonce: str | None = None,
        extensions: str = "",
        gs2_header: str = "n,,",
    ) -> None:
        self._hash = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._password = password
        self._gs2_header = gs2_header
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce or secrets.token_hex(12)}{extensions}"
        self._server_signature = b""

    def first(self) -> bytes:
        """The client's first message."""
        return (self._gs2_header + self._bare).encode()

    def final(self, server_first: bytes, *, channel: str | None = None, more: str = "") -> bytes:
        """The client's last message, with other data of the channel, or with extensions."""
        fields = attributes(server_first)
        binding = b64encode((self._gs2_header if channel is None else channel).encode()).decode()
        without_proof = f"c={binding},r={fields['r']}{more}"
        message = ",".join((self._bare, server_first.decode(), without_proof)).encode()
        salted = hashlib.pbkdf2_hmac(
            self._hash, self._password.encode(), b64decode(fields["s"]), int(fields["i"])
        )
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, message, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._server_signature = hmac.digest(server_key, message, self._hash)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def is_server(self, server_final: bytes) -> bool:
        """Tell whether the last message proves that the server knows the password's keys."""
        return server_final == b"v=" + b64encode(self._server_signature)


def attributes(message: bytes) -> dict[str, str]:
    """The attributes of a message by their letters."""
    pairs = (pair.partition("=") for pair in message.decode().split(","))
    return {name: value for name, _, value in pairs}
