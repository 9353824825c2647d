"""D3: one statement takes most of the database's time: it lacks an index."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import READ_FOR_NOTHING, rows_per_sent, savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

MOST: Final = 0.5
"""Share of the database's time in one statement."""


def _judge(case: Case) -> Suspicion | str:
    seconds = case.facts.by("log_seconds", "id")
    calls = case.facts.by("log_calls", "id")
    if not seconds:
        return "The slow log has no statement of this time."
    worst = max(seconds, key=lambda one: seconds[one])
    whole = sum(seconds.values())
    if seconds[worst] < MOST * whole:
        return "No statement has most of the database's time."
    times = calls.get(worst, 0.0)
    if not times:
        return "The slow log has no statement of this time."
    per_row = rows_per_sent(case, worst)
    if per_row < READ_FOR_NOTHING:
        return f"That with the most time reads {per_row:.0f} rows for each it sends."
    others = whole - seconds[worst]
    usual = others / max(sum(calls.values()) - times, times) if others else 0.0
    spared = 1 - ratio(usual * times, seconds[worst])
    sql = case.driver_seconds
    share = min(ratio(seconds[worst], sql), 1.0) * spared

    def slow(one: Calls) -> float:
        return share * one.spent(["sql"])

    texts = {
        one.labels["id"]: one.labels.get("statement", "")
        for one in case.facts.samples("log_statements")
    }
    evidence = [
        Evidence(
            f"time of `{texts.get(worst, worst)}`", seconds[worst], "s/s", "log_seconds"
        ),
        Evidence("its mean", seconds[worst] / times, "s", "log_seconds", usual),
        Evidence("rows read for each row sent", per_row, "rows", "log_rows_examined"),
    ]
    return Suspicion(savings(case, slow, low=0.8, high=1.1), evidence)


RULE: Final = Rule(
    id="D3",
    name="statement-slow",
    cause="One statement takes most of the database's time: it reads many rows for each"
    " that it sends.",
    judge=_judge,
    asks=(
        "log_seconds",
        "log_calls",
        "log_rows_examined",
        "log_rows_sent",
        "log_statements",
        "sql_call_seconds",
    ),
    fixes=(
        Fix(
            "keystone-manage",
            "db_sync, if the index is one of Keystone's and db_sync --check says that"
            " a migration is missing",
            "It migrates the database: make a backup.",
        ),
        Fix(
            "the database",
            "CREATE INDEX on the columns of its WHERE",
            "The table is locked for the time of the build on old releases.",
        ),
    ),
    gain="The statement's time, less that of the other statements' mean.",
    threshold="Half of the database's time, as much as all other statements together,"
    " and 50 rows read for each row sent: with an index there are few.",
    panel="sql: Statements with the most time",
    explains=("D2", "D5", "D1"),
)
