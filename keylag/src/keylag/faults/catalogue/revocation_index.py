"""A revocation table without its indexes."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.table import ReplacedTable
from keylag.faults.model import GET, Change, Fault, Strength, uses
from keylag.faults.site import Site

INDEXES = """\
SELECT DISTINCT index_name FROM information_schema.statistics
WHERE table_schema = 'keystone' AND table_name = 'revocation_event'
AND index_name <> 'PRIMARY'"""
INSERT = """\
INSERT INTO {{table}} (audit_id, issued_before, revoked_at)
SELECT CONCAT('keylag-', seq), UTC_TIMESTAMP() - INTERVAL 1 MINUTE, UTC_TIMESTAMP()
FROM seq_1_to_{number}"""


def _changes(site: Site, number: float) -> Iterator[Change]:
    drops = ", ".join(f"DROP INDEX `{name}`" for (name,) in site.query(INDEXES))
    insert = INSERT.format(number=round(number))
    yield ReplacedTable(
        "revocation_event",
        [f"ALTER TABLE {{table}} {drops}", insert],
        "audit_id IS NOT NULL AND audit_id LIKE 'keylag-%'",
    )


FAULT = Fault(
    id="R2",
    name="revocation-index",
    summary=("Each validation that is not cached reads the whole revocation table."),
    mechanism=(
        "A copy of the table without secondary indexes and with many more rows "
        "takes its place."
    ),
    slows=(GET,),
    strength=Strength(200_000, "rows", 1, 100_000_000),
    uses=uses(parts.REVOCATIONS),
    changes=_changes,
)
