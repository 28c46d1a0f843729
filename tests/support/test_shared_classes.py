"""Kafka's JVMs use the archive of their classes."""

import subprocess

from tests.support.packages import java_command, kafka_jars


def test_kafkas_classes_come_from_the_archive():
    flags = ("-Xshare:on", "-Xlog:class+load")
    command = java_command("kafka.tools.StorageTool", kafka_jars(), minimum=17, flags=flags)
    done = subprocess.run([*command, "random-uuid"], capture_output=True, text=True, check=True)
    assert "org.apache.kafka.common.Uuid source: shared objects file (top)" in done.stdout
