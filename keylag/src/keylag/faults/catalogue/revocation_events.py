"""Many live revocation events."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.sql import Sql
from keylag.faults.model import GET, Change, Fault, Strength, uses
from keylag.faults.site import Site

INSERT = """\
INSERT INTO revocation_event (audit_chain_id, issued_before, revoked_at)
SELECT CONCAT('keylag-', seq), UTC_TIMESTAMP() + INTERVAL 1 DAY, UTC_TIMESTAMP()
FROM seq_1_to_{number}"""
DELETE = "DELETE FROM revocation_event WHERE audit_chain_id LIKE 'keylag-%'"


def _changes(_: Site, number: float) -> Iterator[Change]:
    yield Sql([INSERT.format(number=round(number))], [DELETE])


FAULT = Fault(
    id="R1",
    name="revocation-events",
    summary=(
        "Each validation that is not cached compares its token with many "
        "revocation events."
    ),
    mechanism=(
        "Events of token chains that do not exist are inserted; they concern "
        "tokens issued up to a day from now."
    ),
    slows=(GET,),
    strength=Strength(3000, "events", 1, 10_000_000),
    uses=uses(parts.REVOCATIONS),
    changes=_changes,
)
