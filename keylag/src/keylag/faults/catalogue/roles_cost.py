"""Users with many roles."""

from collections.abc import Iterator
from typing import Final

from keylag.faults import parts
from keylag.faults.catalog_rows import ID
from keylag.faults.changes.cache import FlushedCache
from keylag.faults.changes.sql import Sql
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

INSERT_ROLES: Final = """\
INSERT INTO role (id, name, domain_id, extra)
SELECT CONCAT('{id}', seq), CONCAT('{id}', seq), '<<null>>', '{{}}'
FROM seq_1_to_{number}"""
ASSIGN_THEM: Final = f"""\
INSERT IGNORE INTO assignment (type, actor_id, target_id, role_id, inherited)
SELECT type, actor_id, target_id, role.id, inherited FROM assignment, role
WHERE type IN ('UserProject', 'GroupProject') AND role.id LIKE '{ID}%'"""


def _changes(_: Site, number: float) -> Iterator[Change]:
    yield FlushedCache()
    yield Sql(
        [INSERT_ROLES.format(id=ID, number=round(number)), ASSIGN_THEM],
        [
            f"DELETE FROM assignment WHERE role_id LIKE '{ID}%'",
            f"DELETE FROM role WHERE id LIKE '{ID}%'",
        ],
    )
    yield FlushedCache()


FAULT = Fault(
    id="A1",
    name="roles-cost",
    summary="Each token has many roles, and each of them is looked up.",
    mechanism="Roles are added, and assigned to all who have a role on a project.",
    slows=(POST, GET),
    strength=Strength(200, "roles", 1, 10_000),
    uses=uses(parts.ROLES),
    changes=_changes,
)
