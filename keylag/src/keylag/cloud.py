"""A believable small cloud to fill a Keystone with.

Three domains, 10 projects, 100 users in 5 groups, roles given directly, by
group and by implication, 20 endpoints in 2 regions, and the user of a service.
"""

import csv
import secrets
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from keystoneauth1 import session as keystone_session
from keystoneauth1.identity import v3
from openstack.connection import Connection

from keylag.record import Admin, load_secrets
from keylag.services import service as small_service
from keylag.stack import Stack
from keylag.stack_folder import StackFolder
from keylag.state import write_private
from keylag.users import COLUMNS

KEY = "small cloud 2"
"""Change this whenever what `fill` makes changes."""

HOME_REGION = "RegionOne"
SECOND_REGION = "RegionTwo"
DOMAINS = ("acme", "globex", "initech")
PROJECTS = 10
USERS = 100
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
"""Each with a public endpoint in both regions; with Keystone's own four, 20."""

#: A role of the cloud's own that implies Keystone's `member`.
IMPLYING_ROLE = "project-operator"
USERS_FILE = "users.csv"
_PARALLEL = 4


@dataclass(frozen=True)
class User:
    """A row of the users file: who logs in, and to which project."""

    username: str
    password: str
    user_domain: str
    project: str
    project_domain: str


def users_file(stack: StackFolder) -> Path:
    """Return where a stack keeps the users of its cloud; readable by its owner."""
    return stack.folder / "data" / USERS_FILE


def fill(stack: Stack, users: int = USERS, more_services: int = 0) -> None:
    """Fill a stack's Keystone and write the users file; once, on an empty one."""
    service_password = load_secrets(stack.data).service
    populate(stack.admin(), users_file(stack), service_password, users, more_services)


def populate(
    admin: Admin,
    file: Path,
    service_password: str,
    users: int = USERS,
    more_services: int = 0,
) -> None:
    """Fill any empty Keystone, and write its users to a file that this makes."""
    identity: Any = connect(admin).identity
    more = {f"service-{number}": f"type-{number}" for number in range(more_services)}
    _endpoints(identity, {**SERVICES, **more})
    domains = [identity.create_domain(name=name) for name in DOMAINS]
    projects = _projects(identity, domains)
    roles = _roles(identity)
    _service_user(identity, roles, service_password)
    groups = _groups(identity, projects, roles)
    _write_users(file, _users(identity, users, projects, groups, roles))


def connect(admin: Admin) -> Connection:
    """Return a connection as the administrator; the SDK's errors are its own."""
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
    """Revoke tokens until so many revocation events are live; returns how many.

    A release may write more than one event for each token: Keystone 30 writes two.
    """
    cloud = connect(stack.admin())
    url = f"{stack.admin().auth_url}/auth/tokens"
    own = str(cloud.session.get_token())

    def revoke_one(_: int) -> None:
        token = _reissue(cloud, url, own)
        cloud.session.delete(url, headers={"X-Subject-Token": token})

    with ThreadPoolExecutor(stack.options.processes) as threads:
        while (live := _live_events(cloud, stack)) < events:
            list(threads.map(revoke_one, range(0, events - live, 2)))
    return live


def _live_events(cloud: Connection, stack: Stack) -> int:
    answer = cloud.session.get(f"{stack.admin().auth_url}/OS-REVOKE/events")
    return len(answer.json()["events"])


def _reissue(cloud: Connection, url: str, token: str) -> str:
    """Return a new token for an old one, which costs no password hash."""
    methods = {"methods": ["token"], "token": {"id": token}}
    answer = cloud.session.post(url, json={"auth": {"identity": methods}})
    return str(answer.headers["X-Subject-Token"])


def _endpoints(identity: Any, services: Mapping[str, str]) -> None:
    """Add the second region and the services' endpoints."""
    identity.create_region(id=SECOND_REGION)
    (keystone,) = identity.services(type="identity")
    _endpoint(identity, keystone.id, SECOND_REGION, _url("keystone", SECOND_REGION))
    for name, kind in services.items():
        service = identity.create_service(name=name, type=kind)
        for region in (HOME_REGION, SECOND_REGION):
            _endpoint(identity, service.id, region, _url(name, region))


def _url(service: str, region: str) -> str:
    return f"http://{service}.{region.lower()}.example.org"


def _endpoint(identity: Any, service_id: str, region: str, url: str) -> None:
    identity.create_endpoint(
        service_id=service_id, region_id=region, interface="public", url=url
    )


def _projects(identity: Any, domains: list[Any]) -> list[tuple[Any, Any]]:
    """Create the projects; returns (project, its domain), dealt out in turn."""
    dealt = islice(cycle(domains), PROJECTS)
    return [
        (identity.create_project(name=f"project-{n}", domain_id=d.id), d)
        for n, d in enumerate(dealt)
    ]


def _roles(identity: Any) -> dict[str, Any]:
    """Create the implying role; returns all roles by name."""
    role = identity.create_role(name=IMPLYING_ROLE)
    roles = {role.name: role for role in identity.roles()}
    answer = identity.put(f"/roles/{role.id}/implies/{roles['member'].id}", json={})
    answer.raise_for_status()
    return roles


def _service_user(identity: Any, roles: dict[str, Any], password: str) -> None:
    """Create the user with which the small service asks about tokens."""
    project = identity.create_project(name=small_service.PROJECT, domain_id="default")
    user = identity.create_user(
        name=small_service.NAME, password=password, domain_id="default"
    )
    identity.assign_project_role_to_user(project, user, roles["service"])


def _groups(
    identity: Any, projects: list[tuple[Any, Any]], roles: dict[str, Any]
) -> dict[str, list[Any]]:
    """Create the groups in each domain with a role on its projects; by domain id."""
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


def _users(
    identity: Any,
    number_of_users: int,
    projects: list[tuple[Any, Any]],
    groups: dict[str, list[Any]],
    roles: dict[str, Any],
) -> list[User]:
    """Create the users, a few at a time: hashing their passwords takes longest."""
    direct = cycle((IMPLYING_ROLE, "member", None))
    tasks: list[Callable[[], User]] = [
        _user_task(identity, number, place, groups, roles.get(role or ""))
        for number, place, role in zip(
            range(number_of_users), cycle(projects), direct, strict=False
        )
    ]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(lambda task: task(), tasks))


def _user_task(
    identity: Any,
    number: int,
    place: tuple[Any, Any],
    groups: dict[str, list[Any]],
    role: Any,
) -> Callable[[], User]:
    """Return what creates one user: in a group always, with a role of its own too."""
    project, domain = place
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
    """Write the file that the JMeter plans read; it holds passwords."""
    write_private(path, "")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for user in users:
            writer.writerow([getattr(user, column) for column in COLUMNS])
