"""The command `aclbroker audit`: from options to answers, a report and an exit status."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from aclbroker.acl.files.policy import PolicyError
from aclbroker.pipeline.acls.broker_properties import PropertiesError
from aclbroker.pipeline.command.engine import EngineError, log_files, reason_for_spark
from aclbroker.pipeline.command.fail_on import judged
from aclbroker.pipeline.command.log_check import check_inputs
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import Describe, ReadHistory, RuleFiles, read_rules
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import LOCAL, SPARK, use
from aclbroker.pipeline.report.terminal import summary
from aclbroker.pipeline.spark.session import SparkUnavailableError, open_session
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.terminal import complain, put_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aclbroker.pipeline.report.content import AuditReport

ReadRules = Callable[[], RuleFiles]

DONE, REFUSED, FAILED, ALARMED = 0, 1, 2, 3
"""The exit statuses: answered, whatever was found; what was given cannot answer it; failed;
answered, and more was found than `--fail-on` accepts.

Failed is also who answered without one of the files, of which no line was an event.
"""

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as shells tell it of a process that SIGINT ended."""

_WIDTH_OF_A_FILE: Final = 100
_PATIENCE: Final = 0.5  # seconds
_LAST_PATIENCE: Final = 10.0  # seconds

_was_interrupted: Final = Event()


def run(
    options: AuditOptions,
    describe: Describe | None = None,
    read_history: ReadHistory | None = None,
) -> int:
    """Do what the options say; return the exit status.

    ``describe`` and ``read_history``: see `read_rules`.
    """
    with _interruptible():
        try:
            status = _run(options, partial(read_rules, options, describe, read_history))
        except KeyboardInterrupt:
            status = _failed(options, "interrupted", INTERRUPTED)
    _forget_unread_output()
    return status


@contextmanager
def _interruptible() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    _was_interrupted.clear()
    _take_interrupts()
    try:
        yield
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, before)


def _take_interrupts(taken: Callable[[int, FrameType | None], None] | None = None) -> None:
    """Have Ctrl-C raise KeyboardInterrupt and nothing else, or do what is given."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, taken or _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _was_interrupted.set()
    # py4j would log where it was.
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


def _note_interrupt(number: int, frame: FrameType | None) -> None:
    """Let Ctrl-C wait for an import: what is raised in one of its callbacks is printed and lost."""
    _was_interrupted.set()


def _run(options: AuditOptions, read: ReadRules) -> int:
    try:
        report = _answered(options, read, Progress())
    except InputError as error:
        return _failed(options, str(error), REFUSED)
    except (PolicyError, PropertiesError, SparkUnavailableError, EngineError, OSError) as error:
        return _failed(options, str(error), FAILED)
    except Exception as error:
        # Spark's errors cannot be named in an except: pyspark may not be installed.
        reason = _reason(error)
        if reason is None:
            raise
        return _failed(options, reason, FAILED)
    _print(summary(report, _columns()))
    return _verdict(options, report)


def _verdict(options: AuditOptions, report: AuditReport) -> int:
    found = judged(options.fail_on, report.alarms)
    for sentence in (*found.exceeded, *found.not_counted):
        complain(f"aclbroker audit {options.job}: {sentence}")
    if report.is_unread:
        return FAILED
    if found.exceeded:
        return ALARMED
    return REFUSED if found.not_counted or report.is_doubted else DONE


def _answered(options: AuditOptions, read: ReadRules, progress: Progress) -> AuditReport:
    check_inputs(options)
    reason = reason_for_spark(options)
    if reason is None:
        return _answered_here(options, read, progress)
    if reason:
        progress.note(f"with Spark: {reason}")
    return _answered_by_spark(options, read, progress)


def _answered_here(options: AuditOptions, read: ReadRules, progress: Progress) -> AuditReport:
    """Answer in this process, without Spark."""
    rules = read()
    _take_interrupts(_note_interrupt)
    # The collector would go through all that these bring, again and again.
    with uncollected():
        from aclbroker.pipeline.local.arrow import leave_pandas_out

        leave_pandas_out()
        from aclbroker.pipeline.command.answers import answered
        from aclbroker.pipeline.local.session import LocalSession

    _take_interrupts()
    if _was_interrupted.is_set():
        raise KeyboardInterrupt
    use(LOCAL)
    try:
        return answered(LocalSession(log_files), options, rules, progress)
    except Exception:
        if _was_interrupted.is_set():
            # A query that is interrupted ends with an error of its own.
            raise KeyboardInterrupt from None
        raise
    finally:
        use(SPARK)


def _answered_by_spark(options: AuditOptions, read: ReadRules, progress: Progress) -> AuditReport:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        # Errors in these files are told before Spark starts, unless the files take long to read.
        wait([reading], _PATIENCE)
        if reading.done():
            reading.result()
        with progress.step("Spark") as step:
            spark = open_session(options.master, options.spark)
            # Spark's own handler first asks the JVM to cancel all jobs, over a connection in use.
            _take_interrupts(_note_interrupt)
            step.name += f" on {spark.sparkContext.master}"
    from aclbroker.pipeline.command.answers import answered
    from aclbroker.pipeline.spark.probe import check_workers
    from aclbroker.pipeline.spark.shipping import ship

    try:
        _take_interrupts()
        if _was_interrupted.is_set():
            raise KeyboardInterrupt
        rules = reading.result()
        progress.watch(spark.sparkContext)
        ship(spark)
        check_workers(spark, options.inputs, options.output)
        # The collector would go through the ACLs again and again. It stays on: `ingest` may go on
        # for days.
        gc.freeze()
        found = answered(spark, options, rules, progress)
    except KeyboardInterrupt:
        # This thread's connection to the JVM may be in the midst of an answer.
        stopping = Thread(target=_stop, args=(spark,), kwargs={"quietly": True}, daemon=True)
        stopping.start()
        stopping.join(_LAST_PATIENCE)
        raise
    except BaseException:
        _stop(spark)
        raise
    _stop(spark)
    return found


def _stop(spark: SparkSession, *, quietly: bool = False) -> None:
    # The answers are written by now, whatever goes wrong here.
    try:
        if quietly:
            # Tasks that are cut off would tell so.
            spark.sparkContext.setLogLevel("OFF")
        spark.stop()
    except Exception as error:  # noqa: BLE001
        if not quietly:
            complain(f"aclbroker audit: Spark did not stop: {type(error).__name__}")


def _reason(error: Exception) -> str | None:
    """What the engine says, without traces of a stack; None if it is not its error."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    from aclbroker.pipeline.ingest.pieces import LineTooLongError
    from aclbroker.pipeline.ingest.sources import IngestError

    if isinstance(error, IngestError):
        return str(error)
    if isinstance(error, LineTooLongError):
        return f"the input cannot be read: {error}"
    if isinstance(error, pa.ArrowException):
        return f"Arrow failed: {error}"
    package = type(error).__module__.partition(".")[0]
    if package in ("duckdb", "_duckdb"):
        return f"DuckDB failed; --engine spark may not: {error}"
    if package in ("pyspark", "py4j"):
        lines = [line for line in str(error).splitlines() if line.strip()]
        told = [line for line in lines if not line.lstrip().startswith(("at ", "File ", "..."))]
        return "Spark failed: " + "\n".join(told[:12])
    return None


def _columns() -> int:
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return _WIDTH_OF_A_FILE


def _print(text: str) -> None:
    with suppress(BrokenPipeError):
        put_text(text)
        sys.stdout.flush()


def _forget_unread_output() -> None:
    """Let what nobody reads any more go to nowhere: Python would complain of it when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _failed(options: AuditOptions, reason: str, status: int) -> int:
    complain(*f"aclbroker audit {options.job}: {reason}".split("\n"))
    return status
