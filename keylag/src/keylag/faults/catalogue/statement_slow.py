"""A statement without its index."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.table import ReplacedTable
from keylag.faults.model import POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

FIRST_USER = 1_000_000_000
"""Above the ids of local users."""
INSERT = """\
INSERT INTO {{table}} (local_user_id, created_at)
SELECT {first} + seq, UTC_TIMESTAMP() FROM seq_1_to_{number}"""


def _changes(_: Site, number: float) -> Iterator[Change]:
    yield ReplacedTable(
        "password",
        [
            "ALTER TABLE {table} DROP INDEX local_user_id",
            INSERT.format(first=FIRST_USER, number=round(number)),
        ],
        f"local_user_id >= {FIRST_USER}",
    )


FAULT = Fault(
    id="D3",
    name="statement-slow",
    summary=("The statement that reads a user's password reads the whole table."),
    mechanism=(
        "A copy of the table `password` without the index on its users and with "
        "many more rows takes its place."
    ),
    slows=(POST,),
    strength=Strength(300_000, "rows", 1, 100_000_000),
    uses=uses(parts.PASSWORDS),
    changes=_changes,
)
