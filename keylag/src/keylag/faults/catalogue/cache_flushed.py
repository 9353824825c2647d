"""Writes that invalidate a cache region."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.cache import FlushedCache
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.sql import Sql
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

IDS = """\
SELECT project.id, local_user.user_id, role.id FROM project, local_user, role
WHERE project.name = 'project-0' AND local_user.name = 'admin'
AND role.name = 'reader'"""
DELETE = """\
DELETE FROM assignment WHERE target_id = '{project}' AND actor_id = '{user}'
AND role_id = '{role}'"""


def _changes(site: Site, per_second: float) -> Iterator[Change]:
    ((project, user, role),) = site.query(IDS)
    # The client may end between assigning and removing.
    yield FlushedCache()
    yield Sql([], [DELETE.format(project=project, user=user, role=role)])
    grant = f"/projects/{project}/users/{user}/roles/{role}"
    storm = {"kind": "write-grant", "per_second": per_second, "grant": grant}
    yield Helper("storm", storm)


FAULT = Fault(
    id="C8",
    name="cache-flushed",
    summary=(
        "Role assignments change all the time, and each change invalidates all "
        "cached roles."
    ),
    mechanism=("A client assigns a role and removes it again, several times a second."),
    slows=(POST, GET),
    strength=Strength(8, "writes per second", 0.01, 1000),
    uses=uses("the role assignments"),
    needs=(parts.CACHED,),
    changes=_changes,
)
