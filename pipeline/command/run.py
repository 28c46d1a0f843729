"""The command `aclbroker audit`: from options to answers, a report and an exit status."""

from __future__ import annotations

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

from aclbroker.broker.policy import PolicyError
from aclbroker.pipeline.acls.broker_properties import PropertiesError
from aclbroker.pipeline.command.log_check import check_inputs
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import Describe, read_rules
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.report.terminal import summary
from aclbroker.pipeline.spark.session import SparkUnavailableError, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aclbroker.pipeline.report.content import AuditReport

DONE, REFUSED, FAILED = 0, 1, 2
"""The exit statuses: answered, whatever was found; what was given cannot answer it; failed.

Failed is also who answered without one of the files, of which no line was an event.
"""

_WIDTH_OF_A_FILE: Final = 100
_PATIENCE: Final = 0.5  # seconds


def run(options: AuditOptions, describe: Describe | None = None) -> int:
    """Do what the options say; return the exit status. ``describe``: see `read_rules`."""
    progress = Progress()
    try:
        report = _answered(options, describe, progress)
    except InputError as error:
        return _failed(options, str(error), REFUSED)
    except (PolicyError, PropertiesError, SparkUnavailableError, OSError) as error:
        return _failed(options, str(error), FAILED)
    except Exception as error:
        # Spark's errors cannot be named in an except: pyspark may not be installed.
        reason = _reason(error)
        if reason is None:
            raise
        return _failed(options, reason, FAILED)
    _print(summary(report, _columns()))
    return FAILED if report.is_unread else DONE


def _answered(options: AuditOptions, describe: Describe | None, progress: Progress) -> AuditReport:
    check_inputs(options)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_rules, options, describe)
        # Errors in these files are told before Spark starts, unless the files take long to read.
        wait([reading], _PATIENCE)
        if reading.done():
            reading.result()
        with progress.step("Spark") as step:
            spark = open_session(options.master, options.spark)
            step.name += f" on {spark.sparkContext.master}"
    from aclbroker.pipeline.command.answers import answered
    from aclbroker.pipeline.spark.shipping import ship

    try:
        rules = reading.result()
        progress.watch(spark.sparkContext)
        ship(spark)
        return answered(spark, options, rules, progress)
    finally:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    # The answers are written by now, whatever goes wrong here.
    try:
        spark.stop()
    except Exception as error:  # noqa: BLE001
        sys.stderr.write(f"aclbroker audit: Spark did not stop: {type(error).__name__}\n")


def _reason(error: Exception) -> str | None:
    """What Spark says, without the traces of its stack; None if it is not Spark's error."""
    from aclbroker.pipeline.ingest.sources import IngestError

    if isinstance(error, IngestError):
        return str(error)
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        lines = [line for line in str(error).splitlines() if line.strip()]
        told = [line for line in lines if not line.lstrip().startswith(("at ", "File ", "..."))]
        return "Spark failed: " + "\n".join(told[:12])
    return None


def _columns() -> int:
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return _WIDTH_OF_A_FILE


def _print(text: str) -> None:
    # A terminal that cannot show a character gets its escape instead of a traceback.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _failed(options: AuditOptions, reason: str, status: int) -> int:
    sys.stderr.write(f"aclbroker audit {options.job}: {reason}\n")
    return status
