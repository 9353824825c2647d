"""Users in a slow directory."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.cache import FlushedCache
from keylag.faults.changes.directory import FOLDER, Directory
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.changes.sql import Sql
from keylag.faults.model import POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

MAP_USERS = """\
INSERT IGNORE INTO id_mapping (public_id, domain_id, local_id, entity_type)
SELECT user_id, domain_id, name, 'user' FROM local_user WHERE domain_id <> 'default'"""
UNMAP_USERS = """\
DELETE id_mapping FROM id_mapping JOIN local_user
ON local_user.user_id = id_mapping.public_id"""
ROLELESS_USERS = """\
SELECT user.id FROM user LEFT JOIN assignment ON assignment.actor_id = user.id
WHERE assignment.actor_id IS NULL AND user.default_project_id IS NOT NULL"""
GIVE_ROLES = """\
INSERT INTO assignment (type, actor_id, target_id, role_id, inherited)
SELECT 'UserProject', user.id, user.default_project_id, role.id, 0 FROM user, role
WHERE role.name = 'member' AND user.id IN ({users})"""
TAKE_ROLES = """\
DELETE assignment FROM assignment
JOIN user ON user.id = actor_id AND user.default_project_id = target_id
JOIN role ON role.id = role_id AND role.name = 'member'
WHERE assignment.type = 'UserProject' AND actor_id IN ({users})"""


def _changes(site: Site, delay_ms: float) -> Iterator[Change]:
    near, far = site.free_address(), site.free_address()
    yield Directory(far)
    yield Helper("directory", {"folder": FOLDER, "address": near})
    yield Helper("relay", {"listen": far, "upstream": near, "delay_ms": delay_ms})
    yield FlushedCache()
    # Users keep their ids, and with them their roles. Groups stay in the database, so
    # that users with roles by group only need their own.
    yield Sql([MAP_USERS], [UNMAP_USERS])
    users = ", ".join(f"'{one}'" for (one,) in site.query(ROLELESS_USERS))
    if users:
        give, take = GIVE_ROLES.format(users=users), TAKE_ROLES.format(users=users)
        yield Sql([give], [take])
    folder = site.folder / FOLDER
    yield Options(
        environment={
            "PYTHONPATH": str(folder / "python"),
            "OS_IDENTITY__DOMAIN_SPECIFIC_DRIVERS_ENABLED": "true",
            "OS_IDENTITY__DOMAIN_CONFIG_DIR": str(folder / "domains"),
        }
    )


FAULT = Fault(
    id="L1",
    name="ldap",
    summary="Keystone checks passwords in an LDAP directory that is far away.",
    mechanism=(
        "Keystone restarts with the domains of the stack's users in OpenLDAP's server, "
        "behind a relay that delays what passes."
    ),
    slows=(POST,),
    strength=Strength(150, "ms in each direction", 0, 10_000),
    uses=uses(parts.PASSWORDS),
    changes=_changes,
)
