"""The users that every broker of these tests knows, ours and Kafka's alike."""

PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
"""User name to password. `admin` is a super user; `alice` and `bob` start with no rights."""

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
"""The authorizer's part of server.properties: whoever comes in by PLAINTEXT is a super user."""

PLAIN_JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="'
    + PASSWORDS["admin"]
    + '"'
    + "".join(f' user_{name}="{password}"' for name, password in PASSWORDS.items())
    + ";"
)
"""The value of `listener.name.sasl_plaintext.plain.sasl.jaas.config`."""

SASL_PLAIN = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_JAAS,
}
"""The part of server.properties that makes a SASL_PLAINTEXT listener accept `PASSWORDS`."""


def properties_text(properties: dict[str, str]) -> str:
    """A server.properties file with these entries."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())
