"""What README and docs tell people to type, held to the parser and to the table of settings."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.broker.config import load
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.names import is_known
from aclbroker.cli.arguments import command_parser, options_of
from aclbroker.pipeline.jobs import JOBS
from aclbroker.testing import plugin
from tests.support.tables import check_each

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# What others read: Kafka's tools, clients' files, and Spark.
OF_OTHERS = re.compile(r"\b(kafka-[a-z-]+\.sh|spark-submit|git|openssl|make|docker|pip)\b")
OF_CLIENTS = re.compile(r"^(security\.protocol|sasl\.mechanism)=", re.MULTILINE)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^    [^\n]*\n|^\n)+)", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w/-])--[a-z][a-z-]*")
SETTING = re.compile(r"(?<![\w./-])(aclbroker(?:\.[a-z]+)+)(?![\w:*-]|\.[A-Z_*<])")
LOGGERS = frozenset({"aclbroker.audit"})
BEFORE_IDS = frozenset({"aclbroker.clusters"})
"""What names of settings begin with that have the id of a cluster in them."""

DEFAULT_STORE = "aclbroker.db"

Spot = tuple[str, str]


def parser_of(*words: str) -> argparse.ArgumentParser:
    """Return the parser of a command such as ``audit denials``; raises KeyError without one."""
    parser = command_parser(words)
    for word in words:
        [actions] = [
            each for each in parser._actions if isinstance(each, argparse._SubParsersAction)
        ]
        parser = actions.choices[word]
    return parser


def words_of(line: str) -> list[str]:
    """Return the words of a usage line as one of the commands that it stands for."""
    line = re.sub(r"\[[A-Z=]*\](?=[A-Z])", "", line)  # [CLUSTER=]FILE
    line = line.partition(" > ")[0]
    words = shlex.split(re.sub(r"[][]|\.\.\.", " ", line), comments=True)
    first = [word.partition("|")[0] for word in words if word != "\\"]
    return [{"COUNT": "4096", "name=value": "node.id=7"}.get(word, word) for word in first]


def commands() -> Iterator[Spot]:
    """Every line of a block that calls aclbroker, with those that continue it."""
    for document in DOCUMENTS:
        for block in BLOCK.finditer(document.read_text()):
            text = re.sub(r"\\\n\s*", "", block[2] or block[3] or "")
            for line in text.splitlines():
                call = re.match(r"\s*(?:\$ )?(?:\.venv/bin/)?aclbroker (?![a-z]+: )(.+)", line)
                if call and block[1] not in ("properties", "yaml"):
                    yield document.name, call[1]


def spans() -> Iterator[Spot]:
    """Every piece of code within a paragraph or a table that is not another program's."""
    for document in DOCUMENTS:
        text = BLOCK.sub("\n", document.read_text())
        for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text):
            if not OF_OTHERS.search(span):
                yield document.name, " ".join(span.split())


def options_of_the_plugin() -> set[str]:
    """Return the options that pytest has with our plugin."""
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    return {name for option in parser.getgroup("aclbroker").options for name in option.names()}


COMMANDS = list(dict.fromkeys(commands()))
SPANS = list(dict.fromkeys(spans()))


def test_the_pages_have_commands_and_options_to_look_at():
    assert len(COMMANDS) >= 10
    assert sum("--" in span for _, span in SPANS) >= 20


def test_every_documented_command_is_parsed(capsys: pytest.CaptureFixture[str]):
    def check_command(spot: Spot) -> None:
        line = spot[1]
        words = words_of(line)
        if "..." not in line.replace("...]", ""):
            try:
                command_parser(words).parse_args(words)
            except SystemExit:
                raise AssertionError(capsys.readouterr().err) from None
            return
        first = next(index for index, word in enumerate(words) if word.startswith("--"))
        assert set(OPTION.findall(line)) <= options_of(parser_of(*words[:first]))

    check_each(COMMANDS, check_command)


def test_every_command_named_in_a_paragraph_exists():
    def check_command(spot: Spot) -> None:
        words = words_of(spot[1])[1:]
        parser_of(*(word for word in words if word.islower() and "-" not in word[:1]))

    check_each((spot for spot in SPANS if re.match(r"aclbroker [a-z]", spot[1])), check_command)


def test_every_documented_option_exists():
    known = options_of(command_parser(["audit"])) | options_of_the_plugin()

    def check_options(spot: Spot) -> None:
        assert set(OPTION.findall(spot[1])) <= known

    check_each((spot for spot in SPANS if OPTION.search(spot[1])), check_options)


def test_every_option_on_the_page_of_jobs_is_one_of_its_job():
    sections = re.split(r"^## ", (ROOT / "docs" / "audit-jobs.md").read_text(), flags=re.MULTILINE)
    assert {section.partition(":")[0] for section in sections[1:]} == JOBS.keys() - {"ingest"}
    for section in sections[1:]:
        job = section.partition(":")[0]
        spans = re.findall(r"`(--[^`]+)`", section)
        named = {option for span in spans for option in OPTION.findall(span)}
        assert named <= options_of(parser_of("audit", job)), job


def test_the_table_of_jobs_tells_what_each_of_them_needs():
    page = (ROOT / "docs" / "audit-analysis.md").read_text().partition("## Jobs")[2]
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \|([^|]*)\|$", page, re.MULTILINE)
    needs = {job: re.findall(r"`--([a-z]+)`", needed) for job, needed in rows}
    for name, job in JOBS.items():
        assert needs[name] == list(job.needs), name


def is_module(name: str) -> bool:
    """Whether a name with the prefix of our settings is that of a module, or of the store."""
    place = ROOT.joinpath("src", *name.split(".")[:3])
    return name.startswith(DEFAULT_STORE) or place.is_dir() or place.with_suffix(".py").exists()


def test_every_documented_setting_of_ours_exists():
    def check_settings(path: Path) -> None:
        names = set(SETTING.findall(path.read_text()))
        ours = {name for name in names if not is_module(name)}
        assert ours - LOGGERS - BEFORE_IDS <= DEFINITIONS.keys()

    check_each(DOCUMENTS, check_settings)


def test_every_setting_that_the_program_names_exists():
    """In error messages, answers to clients and help."""
    for path in (ROOT / "src" / "aclbroker").rglob("*.py"):
        names = set(SETTING.findall(path.read_text()))
        unknown = {name for name in names if not is_module(name)} - DEFINITIONS.keys()
        assert not {name for name in unknown if name.count(".") > 1}, path


def test_every_setting_in_a_block_of_properties_is_kafkas_or_ours():
    """Of brokers' files: a client's has settings that a broker's has not."""
    for document in DOCUMENTS:
        for block in BLOCK.finditer(document.read_text()):
            if block[1] != "properties" or re.search(OF_CLIENTS, block[2]):
                continue
            names = re.findall(r"^([\w.]+)=", block[2].replace("\\\n", ""), re.MULTILINE)
            for name in names:
                assert is_known(name), (document.name, name)


def test_the_example_listens_on_this_machine_and_uses_the_store_of_the_readme():
    config = load(str(ROOT / "examples" / "server.properties"))
    assert [listener.host for listener in config.listeners] == ["127.0.0.1"]
    assert config.store == "sqlite:///aclbroker.db"
    assert "`aclbroker.db`" in (ROOT / "README.md").read_text()
