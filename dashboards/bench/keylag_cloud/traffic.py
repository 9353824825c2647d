"""The calls of a busy cloud: each kind of resource is made, read, changed and deleted.

Load plans send token calls only. A busy cloud also has an administrator's tools, which
create users and projects and list everything, and clients that make mistakes.

    source .keylag/stack/openrc
    PYTHONPATH=dashboards/bench python -m keylag_cloud.traffic 6

makes each call six times, so that both workers of a stack get it.
"""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from requests import Response, Session

TIMEOUT_SECONDS: Final = 60
READ_ONLY: Final = (
    *("/", "/v3", "/healthcheck", "/v3/auth/catalog", "/v3/auth/projects"),
    *("/v3/auth/domains", "/v3/auth/system", "/v3/role_assignments", "/v3/roles"),
    *("/v3/users", "/v3/projects", "/v3/domains", "/v3/groups", "/v3/services"),
    *("/v3/endpoints", "/v3/regions", "/v3/credentials", "/v3/policies"),
    *("/v3/limits", "/v3/limits/model", "/v3/registered_limits", "/v3/role_inferences"),
    *("/v3/OS-TRUST/trusts", "/v3/OS-OAUTH1/consumers", "/v3/OS-REVOKE/events"),
    *("/v3/OS-FEDERATION/identity_providers", "/v3/OS-FEDERATION/mappings"),
    *("/v3/OS-FEDERATION/service_providers", "/v3/OS-FEDERATION/projects"),
    *("/v3/OS-EP-FILTER/endpoint_groups", "/v3/domains/default/config"),
    "/v3/domains/config/default",
)
"""Collections, which are listed."""
MISTAKES: Final = (
    *(
        ("GET", "/v3/users/nobody"),
        ("GET", "/v3/nowhere"),
        ("DELETE", "/v3/projects/0"),
    ),
    *(("POST", "/v3/users"), ("PATCH", "/v3/domains/default"), ("PUT", "/v3/roles")),
)
"""Requests that Keystone refuses."""


@dataclass(frozen=True)
class Resource:
    """A kind of resource, how one is made and changed, and what is below one."""

    collection: str
    name: str
    body: dict[str, Any]
    change: dict[str, Any]
    below: tuple[str, ...] = ()


class Administrator:
    """Makes the calls of an administrator's tools and of mistaken clients."""

    def __init__(self, keystone: str, user: str, password: str, project: str) -> None:
        self._keystone = keystone.removesuffix("/v3")
        self._session = Session()
        self._user, self._password, self._project = user, password, project
        self._token, self._user_id, self._project_id = self._log_in()

    def calls(self) -> Iterator[Response]:
        """Call each route; yield the responses."""
        for path in READ_ONLY:
            yield self._call("GET", path)
        for path in ("/v3/users", "/v3/projects", "/v3/auth/tokens", "/v3"):
            yield self._call("HEAD", path)
            yield self._call("OPTIONS", path)
        yield from self._logins()
        for resource in self._resources():
            yield from self._live(resource)
        yield from self._assignments()
        for method, path in MISTAKES:
            yield self._call(method, path)
        yield self._session.get(f"{self._keystone}/v3/users", timeout=TIMEOUT_SECONDS)

    def _call(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> Response:
        return self._session.request(
            method,
            f"{self._keystone}{path}",
            json=body,
            headers={"X-Auth-Token": self._token, **headers},
            timeout=TIMEOUT_SECONDS,
        )

    def _authenticate(self, identity: dict[str, Any], **scope: Any) -> Response:
        body = {"auth": {"identity": identity, **({"scope": scope} if scope else {})}}
        return self._session.post(
            f"{self._keystone}/v3/auth/tokens", json=body, timeout=TIMEOUT_SECONDS
        )

    def _by_password(self, password: str) -> dict[str, Any]:
        user = {"name": self._user, "domain": {"id": "default"}, "password": password}
        return {"methods": ["password"], "password": {"user": user}}

    def _log_in(self) -> tuple[str, str, str]:
        project = {"name": self._project, "domain": {"id": "default"}}
        response = self._authenticate(
            self._by_password(self._password), project=project
        )
        response.raise_for_status()
        token = response.json()["token"]
        identity = token["user"]["id"], token["project"]["id"]
        return response.headers["X-Subject-Token"], *identity

    def _logins(self) -> Iterator[Response]:
        """Log in with each method and scope, or fail to; validate and revoke."""
        by_token = {"methods": ["token"], "token": {"id": self._token}}
        yield self._authenticate(by_token, project={"id": self._project_id})
        yield self._authenticate(self._by_password("wrong"))
        yield self._authenticate(
            self._by_password(self._password), system={"all": True}
        )
        yield self._authenticate(
            self._by_password(self._password), domain={"id": "default"}
        )
        credential = self._call(
            "POST",
            f"/v3/users/{self._user_id}/application_credentials",
            {"application_credential": {"name": uuid4().hex, "secret": "s"}},
        )
        yield credential
        made = credential.json()["application_credential"]["id"]
        for secret in ("s", "wrong"):
            identity = {
                "methods": ["application_credential"],
                "application_credential": {"id": made, "secret": secret},
            }
            yield self._authenticate(identity)
        path = f"/v3/users/{self._user_id}/application_credentials"
        yield self._call("GET", path)
        yield self._call("GET", f"{path}/{made}")
        yield self._call("DELETE", f"{path}/{made}")
        token = self._authenticate(self._by_password(self._password))
        subject = token.headers["X-Subject-Token"]
        for method in ("GET", "HEAD", "DELETE", "GET", "HEAD"):
            yield self._call(method, "/v3/auth/tokens", **{"X-Subject-Token": subject})
        yield self._call("GET", "/v3/auth/tokens", **{"X-Subject-Token": "no"})

    def _live(self, resource: Resource) -> Iterator[Response]:
        """Make, read, change and delete one resource."""
        collection, name = f"/v3/{resource.collection}", resource.name
        made = self._call("POST", collection, {name: resource.body})
        yield made
        if not made.ok:
            return
        path = f"{collection}/{made.json()[name]['id']}"
        yield self._call("GET", path)
        for below in resource.below:
            yield self._call("GET", f"{path}/{below}")
        yield self._call("PATCH", path, {name: resource.change})
        if resource.collection == "domains":
            yield self._call("PATCH", path, {name: {"enabled": False}})
        yield self._call("DELETE", path)

    def _resources(self) -> Iterator[Resource]:
        unique = uuid4().hex
        project, user = self._project_id, self._user_id
        service = self._call("GET", "/v3/services").json()["services"][0]["id"]
        region = self._call("GET", "/v3/regions").json()["regions"][0]["id"]
        change = {"description": "changed"}
        yield Resource("domains", "domain", {"name": unique}, change)
        yield Resource("projects", "project", {"name": unique}, change)
        below = ("groups", "projects", "credentials/OS-EC2", "application_credentials")
        new_user = {"name": unique, "password": "p"}
        yield Resource("users", "user", new_user, change, below)
        yield Resource("groups", "group", {"name": unique}, change, ("users",))
        yield Resource("roles", "role", {"name": unique}, change, ("implies",))
        yield Resource("regions", "region", {"id": unique}, change)
        a_service = {"type": "t", "name": unique}
        yield Resource("services", "service", a_service, change)
        endpoint = {
            "service_id": service,
            "interface": "public",
            "url": "http://127.0.0.1",
            "region_id": region,
        }
        yield Resource("endpoints", "endpoint", endpoint, {"interface": "internal"})
        secret = {"type": "cert", "blob": "b", "user_id": user, "project_id": project}
        yield Resource("credentials", "credential", secret, {"blob": "c"})
        policy = {"type": "text/plain", "blob": "b"}
        yield Resource("policies", "policy", policy, {"blob": "c"})
        consumer = {"description": "d"}
        yield Resource("OS-OAUTH1/consumers", "consumer", consumer, change)
        group = {"name": unique, "filters": {"interface": "public"}}
        yield Resource(
            "OS-EP-FILTER/endpoint_groups", "endpoint_group", group, {"name": unique}
        )

    def _assignments(self) -> Iterator[Response]:
        """Give a new user a role and take it away, by each kind of path.

        Keystone revokes the tokens of a user who loses a role.
        """
        new_user = {"user": {"name": uuid4().hex}}
        member_id = self._call("POST", "/v3/users", new_user).json()["user"]["id"]
        role = self._call("GET", "/v3/roles").json()["roles"][0]["id"]
        targets = (
            *(f"projects/{self._project_id}", "domains/default", "system"),
            f"OS-INHERIT/projects/{self._project_id}",
        )
        for target in targets:
            roles = f"/v3/{target}/users/{member_id}/roles"
            if target.startswith("OS-INHERIT"):
                path = f"{roles}/{role}/inherited_to_projects"
            else:
                path = f"{roles}/{role}"
                yield self._call("GET", roles)
            for method in ("PUT", "HEAD", "DELETE"):
                yield self._call(method, path)
        group = self._call("POST", "/v3/groups", {"group": {"name": uuid4().hex}})
        yield group
        member = f"/v3/groups/{group.json()['group']['id']}/users/{member_id}"
        for method in ("PUT", "HEAD", "DELETE"):
            yield self._call(method, member)
        yield self._call("DELETE", f"/v3/users/{member_id}")
        user = f"/v3/users/{self._user_id}"
        yield self._call("GET", f"{user}/projects")
        pair = self._call(
            "POST", f"{user}/credentials/OS-EC2", {"tenant_id": self._project_id}
        )
        yield pair
        with contextlib.suppress(KeyError):
            access = pair.json()["credential"]["access"]
            yield self._call("GET", f"{user}/credentials/OS-EC2/{access}")
            yield self._call("DELETE", f"{user}/credentials/OS-EC2/{access}")


def main() -> None:
    """Call Keystone as often as the first argument says; print the statuses."""
    names = ("OS_AUTH_URL", "OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME")
    administrator = Administrator(*(os.environ[name] for name in names))
    for _ in range(int(sys.argv[1])):
        statuses = Counter(one.status_code for one in administrator.calls())
        print(dict(sorted(statuses.items())))  # noqa: T201


if __name__ == "__main__":
    main()
