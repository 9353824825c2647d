"""R2: an index of the revocation table is missing, so each check reads all rows."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

STEP: Final = ("check_revocation",)


def _judge(case: Case) -> Suspicion | str:
    present = case.facts.by("index_present", "columns")
    missing = [columns for columns, there in present.items() if not there]
    if not missing:
        return "The revocation table has all its indexes."
    found = savings(case, lambda calls: case.excess(calls, ["sql"], STEP))
    evidence = [
        Evidence(f"index on {columns}", 0, "", "index_present", 1)
        for columns in missing
    ]
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="R2",
    name="revocation-index",
    cause="The revocation table lacks an index: each check reads all its rows.",
    judge=_judge,
    asks=("index_present",),
    fixes=(
        Fix(
            "keystone-manage",
            "db_sync, if db_sync --check says that a migration is missing",
            "It migrates the database: make a backup, and use the release that runs.",
        ),
        Fix(
            "the database",
            "otherwise CREATE INDEX on the columns of the evidence",
            "Old releases of the server lock the table for the time of the build.",
        ),
    ),
    gain="The time of SQL in revocation checks beyond that of a healthy Keystone.",
    threshold="An index that Keystone's own migrations make is missing.",
    panel="revocation: Indexes",
    explains=("D3", "D2", "R1"),
)
