"""The story driver of confluent-kafka and of kafka-python, whichever the argument names.

tests/clients/drivers.py describes what it reads and prints. It is a process of its own, as the
drivers in other languages are, so that what a library leaves open or warns of stays its own.
"""

import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import confluent_kafka.admin as librdkafka
import kafka.admin as kafka_python
from confluent_kafka import KafkaException
from kafka.errors import KafkaError, NoError

SECONDS = 20


class Tls:
    """The files for TLS, which are used from the step `tls` on; without a CA there is no TLS."""

    _ca = ""
    _identity = ""

    def tls(self, ca: str = "", identity: str = "") -> None:
        self._ca, self._identity = ca, identity

    def _protocol(self, user: str) -> str:
        return ("" if user == "-" else "SASL_") + ("SSL" if self._ca else "PLAINTEXT")


class ConfluentKafka(Tls):
    """confluent-kafka, that is librdkafka; it calls the resource type CLUSTER a broker."""

    _client: librdkafka.AdminClient | None = None

    def connect(self, address: str, user: str, password: str, mechanism: str = "PLAIN") -> None:
        self._client = librdkafka.AdminClient(
            {
                "bootstrap.servers": address,
                "security.protocol": self._protocol(user),
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": password,
                "ssl.ca.location": self._ca,
                "ssl.certificate.location": self._identity,
                "ssl.key.location": self._identity,
            }
        )

    def create(self, *acls: str) -> list[str | None]:
        bindings = [librdkafka.AclBinding(*self._fields(acl)) for acl in acls]
        futures = self._admin.create_acls(bindings, request_timeout=SECONDS)
        return [self._outcome(futures[binding]) for binding in bindings]

    def list_acls(self, acl_filter: str) -> list[str]:
        wanted = librdkafka.AclBindingFilter(*self._fields(acl_filter))
        found = self._admin.describe_acls(wanted, request_timeout=SECONDS).result(SECONDS)
        return self._texts(found)

    def delete(self, *filters: str) -> list[Any]:
        wanted = [librdkafka.AclBindingFilter(*self._fields(each)) for each in filters]
        futures = self._admin.delete_acls(wanted, request_timeout=SECONDS)
        return [self._outcome(futures[each], self._texts) for each in wanted]

    def name_of(self, error: Exception) -> str:
        return str(error.args[0].name())

    def disconnect(self) -> None:
        self._client = None

    @property
    def _admin(self) -> librdkafka.AdminClient:
        assert self._client is not None
        return self._client

    def _outcome(self, future: Future[Any], read: Callable[[Any], Any] = lambda found: None) -> Any:
        try:
            return read(future.result(SECONDS))
        except KafkaException as error:
            return self.name_of(error)

    def _fields(self, word: str) -> tuple[Any, ...]:
        kind, name, pattern, principal, host, operation, permission = word.split(",")
        return (
            librdkafka.ResourceType["BROKER" if kind == "CLUSTER" else kind],
            name or None,
            librdkafka.ResourcePatternType[pattern],
            principal or None,
            host or None,
            librdkafka.AclOperation[operation],
            librdkafka.AclPermissionType[permission],
        )

    def _texts(self, acls: Iterable[Any]) -> list[str]:
        return [
            ",".join(
                (
                    acl.restype.name.replace("BROKER", "CLUSTER"),
                    acl.name,
                    acl.resource_pattern_type.name,
                    acl.principal,
                    acl.host,
                    acl.operation.name,
                    acl.permission_type.name,
                )
            )
            for acl in acls
        ]


class KafkaPython(Tls):
    """kafka-python 3."""

    _client: kafka_python.KafkaAdminClient | None = None

    def connect(self, address: str, user: str, password: str, mechanism: str = "PLAIN") -> None:
        self.disconnect()
        self._client = kafka_python.KafkaAdminClient(
            bootstrap_servers=address,
            security_protocol=self._protocol(user),
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
            ssl_cafile=self._ca or None,
            ssl_certfile=self._identity or None,
            ssl_keyfile=self._identity or None,
        )

    def create(self, *acls: str) -> list[str | None]:
        outcome = self._admin.create_acls([self._acl(kafka_python.ACL, acl) for acl in acls])
        # It counts the failures without saying which ACL each belongs to.
        succeeded: list[str | None] = [None for _ in outcome["succeeded"]]
        return succeeded + [self._name(error) for error in outcome["failed"]]

    def list_acls(self, acl_filter: str) -> list[str]:
        found, _ = self._admin.describe_acls(self._acl(kafka_python.ACLFilter, acl_filter))
        return [self._text(acl) for acl in found]

    def delete(self, *filters: str) -> list[Any]:
        wanted = [self._acl(kafka_python.ACLFilter, each) for each in filters]
        return [
            [self._text(acl) for acl in found] if error is NoError else self._name(error)
            for _, found, error in self._admin.delete_acls(wanted)
        ]

    def name_of(self, error: Exception) -> str:
        return type(error).__name__

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    @property
    def _admin(self) -> kafka_python.KafkaAdminClient:
        assert self._client is not None
        return self._client

    def _name(self, error: type[Exception]) -> str:
        return error.__name__

    def _acl(self, of: type, word: str) -> Any:
        kind, name, pattern, principal, host, operation, permission = word.split(",")
        resource_of = {
            kafka_python.ACL: kafka_python.ResourcePattern,
            kafka_python.ACLFilter: kafka_python.ResourcePatternFilter,
        }
        resource = resource_of[of](
            kafka_python.ResourceType[kind],
            name or None,
            kafka_python.ACLResourcePatternType[pattern],
        )
        return of(
            principal=principal or None,
            host=host or None,
            operation=kafka_python.ACLOperation[operation],
            permission_type=kafka_python.ACLPermissionType[permission],
            resource_pattern=resource,
        )

    def _text(self, acl: kafka_python.ACL) -> str:
        resource = acl.resource_pattern
        return ",".join(
            (
                resource.resource_type.name,
                resource.resource_name,
                resource.pattern_type.name,
                acl.principal,
                acl.host,
                acl.operation.name,
                acl.permission_type.name,
            )
        )


def main(client: ConfluentKafka | KafkaPython) -> None:
    """Answer the steps on standard input."""
    verbs: dict[str, Callable[..., Any]] = {
        "connect": client.connect,
        "tls": client.tls,
        "create": client.create,
        "list": client.list_acls,
        "delete": client.delete,
        "disconnect": client.disconnect,
    }
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "disconnect":
            client.tls()
        try:
            answer = {"result": verbs[verb](*words)}
        except (KafkaError, KafkaException) as error:
            answer = {"error": client.name_of(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(ConfluentKafka() if sys.argv[1] == "confluent-kafka" else KafkaPython())
