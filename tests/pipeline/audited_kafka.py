"""A Kafka 4.3.0 that logs all decisions of its authorizer, and another record of them to compare.

Its log4j 2 writes each message four times: by the pattern of Kafka's own configuration, by the same
with line breaks escaped, by another one, and as JSON. `tests/pipeline/java/RecordingAuthorizer`
records what was really asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tests.support.kafka import QUICK_TO_START, Kafka
from tests.support.packages import compiled_java, logging_kafka_jars

ZONE = ZoneInfo("Asia/Kolkata")
"""The zone of the broker's clock, which its log does not tell."""

_LOGGING = """\
<Configuration shutdownHook="disable">
  <Appenders>
    <Console name="console"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
    <File name="plain" fileName="{plain}"><PatternLayout pattern="[%d] %p %m (%c)%n"/></File>
    <File name="escaped" fileName="{escaped}">
      <PatternLayout pattern="[%d] %p %enc{{%m}}{{CRLF}} (%c)%n"/>
    </File>
    <File name="other" fileName="{other}">
      <PatternLayout pattern="{pattern}"/>
    </File>
    <File name="json" fileName="{json}"><JsonLayout compact="true" eventEol="true"/></File>
  </Appenders>
  <Loggers>
    <Logger name="kafka.authorizer.logger" level="trace" additivity="false">
      <AppenderRef ref="plain"/><AppenderRef ref="escaped"/>
      <AppenderRef ref="other"/><AppenderRef ref="json"/>
    </Logger>
    <Logger name="kafka.server.KafkaRaftServer" level="info"/>
    <Root level="warn"><AppenderRef ref="console"/></Root>
  </Loggers>
</Configuration>
"""


PATTERN = "%d{ISO8601}{UTC} %-5p [%t] %c{1.} - %enc{%m}{CRLF}%n"
"""Another layout than Kafka's own."""


class Asked(NamedTuple):
    """What the authorizer was asked, and what it decided; named as columns of events."""

    principal: str
    host: str
    operation: str
    resource_type: str
    resource_name: str
    allowed: bool
    reference_count: int
    api: str


class AuditedKafka(Kafka):
    """Kafka with its authorizer's log in `plain`, `escaped`, `other` (by `PATTERN`) and `json`."""

    def __init__(self, directory: Path, overrides: dict[str, str]) -> None:
        self.plain = directory / "kafka-authorizer.log"
        self.escaped = directory / "kafka-authorizer-escaped.log"
        self.other = directory / "kafka-authorizer-other.log"
        self.json = directory / "kafka-authorizer.json"
        self._recorded = directory / "recorded.jsonl"
        logging = directory / "log4j2.xml"
        files = {
            "plain": self.plain,
            "escaped": self.escaped,
            "other": self.other,
            "json": self.json,
        }
        logging.write_text(_LOGGING.format(pattern=PATTERN, **files))
        jars = logging_kafka_jars()
        java = Path(__file__).parent / "java"
        classes = compiled_java(
            "java-recording-authorizer", jars, "RecordingAuthorizer.java", root=java, release=17
        )
        super().__init__(
            directory,
            flags=(
                *QUICK_TO_START,
                f"-Dlog4j2.configurationFile={logging}",
                f"-Duser.timezone={ZONE.key}",
            ),
            overrides={
                "authorizer.class.name": "RecordingAuthorizer",
                "recording.file": str(self._recorded),
                **overrides,
            },
            class_path=(classes, jars),
        )

    def recorded(self) -> list[Asked]:
        """Return what the authorizer was asked, in order but for what was at the same time."""
        lines = self._recorded.read_text().split("\n")[:-1]
        return [Asked(**json.loads(line)) for line in lines]
