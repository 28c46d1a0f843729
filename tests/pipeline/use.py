"""Small tables of usage, and what jobs are given around them."""

from datetime import UTC, date, datetime, time, timedelta

from aclbroker.pipeline import schemas
from aclbroker.pipeline.interface.inputs import Inputs, Window
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.usage.table import Usage

FIRST_DAY = date(2026, 3, 1)

DEFAULTS = {
    "cluster": "c1",
    "listener": "SASL",
    "principal": "User:alice",
    "other_principals": None,
    "host": "10.0.0.1",
    "operation": "READ",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "api": "Fetch",
    "allowed": True,
    "rule": None,
    "quiet": False,
    "events": 1,
    "reference_count": None,
}


def used(day=0, hour=12, **values):
    """A row of usage, ``day`` days after the first."""
    on = FIRST_DAY + timedelta(days=day)
    at = datetime.combine(on, time(hour), UTC)
    row = {**DEFAULTS, "day": on, "first_seen": at, "last_seen": at, **values}
    row["rule"] = row["rule"] or ("MatchingAcl" if row["allowed"] else "DefaultDeny")
    row["reference_count"] = row["reference_count"] or row["events"]
    return row


def inputs_of(spark, place, rows, days, **rules):
    """The inputs of a job for a log of so many days."""
    schema = schemas.usage()
    table = spark.createDataFrame([tuple(row[f.name] for f in schema) for row in rows], schema)
    allowed = sum(row["events"] for row in rows if row["allowed"])
    events = sum(row["events"] for row in rows)
    window = Window(
        FIRST_DAY, FIRST_DAY + timedelta(days=days - 1), events, allowed, events - allowed, 0
    )
    return Inputs(spark, Usage(table), window, Output(spark, str(place)), **rules)


def table_of(result, title):
    """A table of a result as a list of mappings from its headings."""
    (found,) = (table for table in result.tables if table.title == title)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def figures_of(result):
    return {figure.label: figure.value for figure in result.figures}
