"""What is published: a wheel with one package, which works beside an application's own modules."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.pythons import (
    ROOT,
    constraints,
    lend,
    new_environment,
    require_python,
)
from tests.pipeline.small_log import small_log
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.toolchain import require_java, run

SUPPORTED = ("3.11", "3.12", "3.13")
NEWEST = SUPPORTED[-1]
"""The extra is installed for this one; all other tests run the oldest."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    output = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run([*pip, "--wheel-dir", str(output), str(ROOT)], cwd=output)
    [file] = output.glob("*.whl")
    return file


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """A directory whose modules have the names that this repository's folders have."""
    directory = tmp_path / "application"
    (directory / "pipeline").mkdir(parents=True)
    names = ("broker.py", "protocol.py", "pipeline/__init__.py", "pipeline/result.py")
    for name in names:
        (directory / name).write_text("raise ImportError('this is the application')\n")
    return directory


def installed(wheel: Path, version: str, directory: Path, extras: str = "") -> Path:
    """Install the wheel into a new environment; returns its Python."""
    python = new_environment(version, directory / "environment")
    if "spark" in extras:
        lend(python, "pyspark", "py4j")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    pins = constraints(directory / "constraints.txt")
    run([*pip, "-c", str(pins), f"{wheel}{extras}"], cwd=directory)
    return python


def test_a_wheel_holds_one_package_and_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    folders = {name.partition("/")[0] for name in names}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"aclbroker"}
    assert {
        "aclbroker/py.typed",
        "aclbroker/acl/decisions.py",
        "aclbroker/broker/config/kafka_names.txt",
        "aclbroker/broker/config/kafka_settings.tsv",
        "aclbroker/conformance/recordings/kafka-4.3.0.json.gz",
        "aclbroker/conformance/recordings/kafka-4.3.0-behaviour.json.gz",
        "aclbroker/pipeline/report/style.css",
        "aclbroker/protocol/wire.py",
    } <= set(names)


@pytest.mark.parametrize("version", SUPPORTED)
def test_it_serves_beside_an_application_with_modules_of_the_same_names(
    version: str, wheel: Path, application: Path, tmp_path: Path
) -> None:
    require_python(version)
    python = installed(wheel, version, tmp_path)
    broker = Broker(application, environment={"PYTHONPATH": str(application)})
    broker.command = [str(python), "-m", "aclbroker", *broker.command[1:]]

    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("orders")) == [0]
        assert client.resource_names() == ["orders"]
    broker.terminate()


def test_it_audits_beside_an_application_with_modules_of_the_same_names(
    wheel: Path, application: Path, tmp_path: Path
) -> None:
    require_python(NEWEST)
    require_java(17)
    python = installed(wheel, NEWEST, tmp_path, "[spark]")
    log = small_log(tmp_path)
    paths = {"PYTHONPATH": str(application), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    inputs = ["--input", str(log.log), "--acls", str(log.acls), "--proposed", str(log.proposed)]

    done = subprocess.run(
        [
            str(python),
            "-m",
            "aclbroker",
            "audit",
            "what-if",
            *inputs,
            "--output",
            "report",
            "--engine",
            "spark",
        ],
        cwd=application,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=False,
    )

    assert re.search(r"TOPIC pay\.in +5 +0\n", done.stdout), done.stdout + done.stderr
    assert (application / "report" / "what-if.html").is_file()
