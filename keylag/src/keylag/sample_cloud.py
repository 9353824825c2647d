"""A small sample cloud for an empty Keystone.

It has 3 domains, 10 projects, 100 users in 5 groups, 20 endpoints in 2 regions, and
the user of a service, or more of them.  Roles are assigned directly, by group and by
implication.
"""

import csv
import secrets
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from keystoneauth1 import session as keystone_session
from keystoneauth1.identity import v3
from openstack.connection import Connection

from keylag.services import protected_service
from keylag.stack import InitialData, Stack, StackOptions
from keylag.stack_info import StackInfo
from keylag.stack_record import AdminCredentials, load_secrets
from keylag.state import write_private
from keylag.users_csv import COLUMNS

DATA_KEY = "small cloud 2"
"""Identifies the result of `populate_stack`; change it with the result."""

HOME_REGION = "RegionOne"
SECOND_REGION = "RegionTwo"
DOMAINS = ("acme", "globex", "initech")
GROUPS = ("operators", "developers", "testers", "auditors", "guests")
SERVICES = {
    "nova": "compute",
    "neutron": "network",
    "glance": "image",
    "cinder": "block-storage",
    "placement": "placement",
    "heat": "orchestration",
    "swift": "object-store",
    "octavia": "load-balancer",
}
"""Type of each service; each has a public endpoint in both regions."""

IMPLYING_ROLE = "project-operator"
"""A role that implies Keystone's `member`."""
USERS_FILE = "users.csv"
_PARALLEL = 4


@dataclass(frozen=True)
class CloudSize:
    """How much a cloud has."""

    users: int = StackOptions.users
    projects: int = 10
    more_services: int = 0
    """Services beside SERVICES."""

    def differences(self) -> str:
        """Return what differs from a small cloud, such as ", 1000 users"."""
        return "".join(
            f", {number} {name.replace('_', ' ')}"
            for name, number in asdict(self).items()
            if number != getattr(SMALL, name)
        )


SMALL = CloudSize()


@dataclass(frozen=True)
class User:
    """A row of the CSV file of users."""

    username: str
    password: str
    user_domain: str
    project: str
    project_domain: str


def users_file(stack: StackInfo) -> Path:
    """Return the path of a stack's CSV file of users; only its owner may read it."""
    return stack.folder / "data" / USERS_FILE


def initial_data(size: CloudSize = SMALL) -> InitialData:
    """Return the cloud as the initial data of a stack."""
    return InitialData(
        DATA_KEY + size.differences(), partial(populate_stack, size=size)
    )


def populate_stack(stack: Stack, size: CloudSize = SMALL) -> None:
    """Create the cloud in the empty Keystone of a stack, and write its users file."""
    service_password = load_secrets(stack.data).service
    populate_keystone(stack.admin(), users_file(stack), service_password, size)


def populate_keystone(
    admin: AdminCredentials, file: Path, service_password: str, size: CloudSize = SMALL
) -> None:
    """Create the cloud in any empty Keystone, and write its users to `file`.

    Raises the errors of openstacksdk.
    """
    identity: Any = connect(admin).identity
    more = {
        f"service-{number}": f"type-{number}" for number in range(size.more_services)
    }
    _create_endpoints(identity, {**SERVICES, **more})
    domains = [identity.create_domain(name=name) for name in DOMAINS]
    projects = _create_projects(identity, domains, size.projects)
    roles = _create_roles(identity)
    _create_service_user(identity, roles, service_password)
    groups = _create_groups(identity, projects, roles)
    _write_users(file, _create_users(identity, size.users, projects, groups, roles))


def connect(admin: AdminCredentials) -> Connection:
    """Return a connection as the administrator; raises the errors of openstacksdk."""
    auth = v3.Password(
        auth_url=admin.auth_url,
        username=admin.username,
        password=admin.password,
        project_name=admin.project_name,
        user_domain_id="default",
        project_domain_id="default",
    )
    return Connection(
        session=keystone_session.Session(auth=auth),
        region_name=HOME_REGION,
        identity_interface="public",
        identity_endpoint_override=admin.auth_url,
    )


def revoke_tokens(stack: Stack, events: int) -> int:
    """Revoke tokens until at least `events` revocation events are live.

    Returns their number.  One token may cause several events: two in Keystone 30.
    """
    cloud = connect(stack.admin())
    url = f"{stack.admin().auth_url}/auth/tokens"
    own = str(cloud.session.get_token())

    def revoke_one(_: int) -> None:
        token = _reissue(cloud, url, own)
        cloud.session.delete(url, headers={"X-Subject-Token": token})

    with ThreadPoolExecutor(stack.options.processes) as threads:
        while (live := _count_live_events(cloud, stack)) < events:
            list(threads.map(revoke_one, range(0, events - live, 2)))
    return live


def _count_live_events(cloud: Connection, stack: Stack) -> int:
    answer = cloud.session.get(f"{stack.admin().auth_url}/OS-REVOKE/events")
    return len(answer.json()["events"])


def _reissue(cloud: Connection, url: str, token: str) -> str:
    # Authenticating by token avoids the password hash.
    methods = {"methods": ["token"], "token": {"id": token}}
    answer = cloud.session.post(url, json={"auth": {"identity": methods}})
    return str(answer.headers["X-Subject-Token"])


def _create_endpoints(identity: Any, services: Mapping[str, str]) -> None:
    identity.create_region(id=SECOND_REGION)
    (keystone,) = identity.services(type="identity")
    _create_endpoint(
        identity, keystone.id, SECOND_REGION, _endpoint_url("keystone", SECOND_REGION)
    )
    for name, kind in services.items():
        service = identity.create_service(name=name, type=kind)
        for region in (HOME_REGION, SECOND_REGION):
            _create_endpoint(identity, service.id, region, _endpoint_url(name, region))


def _endpoint_url(service: str, region: str) -> str:
    return f"http://{service}.{region.lower()}.example.org"


def _create_endpoint(identity: Any, service_id: str, region: str, url: str) -> None:
    identity.create_endpoint(
        service_id=service_id, region_id=region, interface="public", url=url
    )


def _create_projects(
    identity: Any, domains: list[Any], number: int
) -> list[tuple[Any, Any]]:
    """Return (project, domain) pairs; the domains take turns."""
    in_turn = islice(cycle(domains), number)
    return [
        (identity.create_project(name=f"project-{n}", domain_id=d.id), d)
        for n, d in enumerate(in_turn)
    ]


def _create_roles(identity: Any) -> dict[str, Any]:
    """Create the implying role and return all roles by name."""
    role = identity.create_role(name=IMPLYING_ROLE)
    roles = {role.name: role for role in identity.roles()}
    answer = identity.put(f"/roles/{role.id}/implies/{roles['member'].id}", json={})
    answer.raise_for_status()
    return roles


def _create_service_user(identity: Any, roles: dict[str, Any], password: str) -> None:
    project = identity.create_project(
        name=protected_service.PROJECT, domain_id="default"
    )
    user = identity.create_user(
        name=protected_service.NAME, password=password, domain_id="default"
    )
    identity.assign_project_role_to_user(project, user, roles["service"])


def _create_groups(
    identity: Any, projects: list[tuple[Any, Any]], roles: dict[str, Any]
) -> dict[str, list[Any]]:
    """Create groups with roles on their domain's projects; return them by domain id."""
    groups: dict[str, list[Any]] = {}
    for project, domain in projects:
        if domain.id not in groups:
            groups[domain.id] = [
                identity.create_group(name=name, domain_id=domain.id) for name in GROUPS
            ]
        for group, role in zip(
            groups[domain.id], cycle(("member", "reader")), strict=False
        ):
            identity.assign_project_role_to_group(project, group, roles[role])
    return groups


def _create_users(
    identity: Any,
    number_of_users: int,
    projects: list[tuple[Any, Any]],
    groups: dict[str, list[Any]],
    roles: dict[str, Any],
) -> list[User]:
    # In parallel, because Keystone spends most of the time on password hashes.
    direct = cycle((IMPLYING_ROLE, "member", None))
    tasks: list[Callable[[], User]] = [
        _user_creator(
            identity, number, project_and_domain, groups, roles.get(role or "")
        )
        for number, project_and_domain, role in zip(
            range(number_of_users), cycle(projects), direct, strict=False
        )
    ]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(lambda task: task(), tasks))


def _user_creator(
    identity: Any,
    number: int,
    project_and_domain: tuple[Any, Any],
    groups: dict[str, list[Any]],
    role: Any,
) -> Callable[[], User]:
    """Return a function that creates a user in a group, with a role if it is set."""
    project, domain = project_and_domain
    group = groups[domain.id][number % len(GROUPS)]

    def create() -> User:
        name, password = f"user-{number:03}", secrets.token_urlsafe(16)
        user = identity.create_user(
            name=name,
            password=password,
            domain_id=domain.id,
            default_project_id=project.id,
        )
        identity.add_user_to_group(user, group)
        if role is not None:
            identity.assign_project_role_to_user(project, user, role)
        return User(name, password, domain.name, project.name, domain.name)

    return create


def _write_users(path: Path, users: Iterable[User]) -> None:
    write_private(path, "")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for user in users:
            writer.writerow([getattr(user, column) for column in COLUMNS])
