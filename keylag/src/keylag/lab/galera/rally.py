"""Runs Rally's scenarios of Keystone's users at the first site.

Rally works in a folder of its own, with the results in `rally.json`.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import click

from keylag.lab.galera import haproxy
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.site import REVOCATION_EVENTS, site_folder
from keylag.lab.galera.site_breakdown import break_down
from keylag.lab.iproute import NO_PROXY, LabError, command_in
from keylag.services.base import StackOptions, inherited_environment
from keylag.services.keystone import REGION
from keylag.stack_info import StackInfo
from keylag.state import state_folder, write_private
from keylag.tools import venvs
from keylag.tools.install import require_tool
from keylag.tools.tool import ToolError, tail

SCENARIOS: Final[Mapping[str, str]] = {
    "create-user": "KeystoneBasic.create_user",
    "create-and-list-users": "KeystoneBasic.create_and_list_users",
}
"""Rally's scenarios by the names that are used here."""
TIMES: Final = 20
CONCURRENCY: Final = 5
WORKERS: Final = StackOptions.processes
"""Keystone's at a site, each of which works on one request at a time."""
CREATE_USER: Final = "POST /v3/users"
"""The request that each iteration of both scenarios sends once."""
ENVIRONMENT: Final = "keylag"
DOMAIN: Final = "Default"


@dataclass(frozen=True)
class Iterations:
    """The iterations of a scenario, in the order they began."""

    seconds: tuple[float, ...]
    """Of those that succeeded."""
    errors: tuple[str, ...]
    """Of those that failed: what Rally says, in one line."""
    actions: Mapping[str, tuple[float, ...]]
    """The seconds of the actions of an iteration, by Rally's names."""
    period: tuple[float, float]
    """Unix times of the begin of the first one and of the end of the last one."""
    keystone_seconds: Mapping[str, float] = field(default_factory=dict)
    """What an iteration took in Keystone, by category: a mean; empty if unknown."""

    @property
    def outside_seconds(self) -> float:
        """The rest of a mean iteration: it waits for a free worker, and in Rally."""
        return fmean(self.seconds) - sum(self.keystone_seconds.values())

    @property
    def busy_workers(self) -> float:
        """The mean number of requests that Keystone worked on at the same time."""
        begun, ended = self.period
        return len(self.seconds) * sum(self.keystone_seconds.values()) / (ended - begun)

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON; those of Keystone are null if unknown."""
        known = bool(self.keystone_seconds)
        return {
            **asdict(self),
            "outside_seconds": self.outside_seconds if known else None,
            "busy_workers": self.busy_workers if known else None,
        }


@dataclass(frozen=True)
class RallyLoad:
    """How many iterations run, and who logs in before each of them."""

    times: int = TIMES
    concurrency: int = CONCURRENCY
    """Iterations at the same time."""
    users: int | None = None
    """As many as iterations at the same time, if it is None.

    If a new user logs in twice at the same time, Galera may refuse one of both.
    """

    def workload(self) -> dict[str, Any]:
        """Return it for Rally."""
        context = {
            "users_per_tenant": self.users or self.concurrency,
            "user_choice_method": "round_robin",
        }
        numbers = {"times": self.times, "concurrency": self.concurrency}
        return {
            "runner": {"type": "constant", **numbers},
            "context": {"users@openstack": context},
        }


def run_scenario(
    lab: GaleraWan, scenario: str, out: Path, load: RallyLoad | None = None
) -> Iterations:
    """Run a scenario with 50 revocation events, and return its iterations.

    `out` is a new folder.  Rally deletes the users that it made.  Raises LabError,
    ToolError or pymysql.MySQLError.
    """
    lab.cluster().limit_events(REVOCATION_EVENTS)
    rally = Rally(lab, out)
    rally.prepare()
    workload = (load or RallyLoad()).workload()
    rally.write("task.json", {SCENARIOS[scenario]: [workload]})
    rally.run("task", "start", "task.json", "--env", ENVIRONMENT)
    rally.run("task", "report", "--json", "--out", "rally.json")
    found = read_iterations(json.loads((out / "rally.json").read_text("utf-8")))
    return replace(found, keystone_seconds=_in_keystone(lab, found.period))


def _in_keystone(lab: GaleraWan, period: tuple[float, float]) -> dict[str, float]:
    """Return the seconds of an iteration in Keystone, by category.

    What Rally deletes afterwards does not count.  If the site's Prometheus does not
    answer, or promtool is missing, this prints why, and returns nothing.
    """
    router = lab.router(1)
    try:
        found = break_down(lab.folder, router, *period, without="DELETE")
    except (LabError, ToolError) as error:
        click.echo(error, err=True)
        return {}
    if not (users := found.counts.get(CREATE_USER)):
        return {}
    return {name: seconds / users for name, seconds in found.seconds.items()}


def read_iterations(report: Mapping[str, Any]) -> Iterations:
    """Return the iterations in a report of Rally with one workload.

    Raises LabError if Rally ran none.
    """
    data = [
        one
        for task in report["tasks"]
        for subtask in task["subtasks"]
        for workload in subtask["workloads"]
        for one in workload["data"]
    ]
    if not data:
        message = "Rally ran no iteration. Its log is beside the results."
        raise LabError(message)
    data.sort(key=lambda one: one["timestamp"])
    served = [one for one in data if not one["error"]]
    period = (
        data[0]["timestamp"],
        max(one["timestamp"] + one["duration"] for one in data),
    )
    names = dict.fromkeys(
        action["name"] for one in served for action in one["atomic_actions"]
    )
    return Iterations(
        tuple(one["duration"] for one in served),
        tuple(" ".join(one["error"][:2]) for one in data if one["error"]),
        {name: _seconds_of(name, served) for name in names},
        period,
    )


def _seconds_of(
    action: str, iterations: Sequence[Mapping[str, Any]]
) -> tuple[float, ...]:
    return tuple(
        one["finished_at"] - one["started_at"]
        for iteration in iterations
        for one in iteration["atomic_actions"]
        if one["name"] == action
    )


@dataclass(frozen=True)
class Rally:
    """Rally on the router of the first site, with a folder of its own."""

    lab: GaleraWan
    folder: Path

    def prepare(self) -> None:
        """Make its database and the environment of the site's Keystone.

        Raises LabError or ToolError.
        """
        # Rally's log and database have the administrator's password.
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        database = self.folder.resolve() / "rally.sqlite"
        config = f"[database]\nconnection = sqlite:///{database}\n"
        (self.folder / "rally.conf").write_text(config, encoding="utf-8")
        self.write("environment.json", {"existing@openstack": self._cloud()})
        self.run("db", "create")
        spec = ("--name", ENVIRONMENT, "--spec", "environment.json")
        self.run("env", "create", *spec)

    def _cloud(self) -> dict[str, Any]:
        router = self.lab.router(1)
        admin = StackInfo(site_folder(self.lab.folder, router.name)).admin()
        return {
            "auth_url": f"{haproxy.keystone_url(router)}/v3",
            # The catalog has other regions, too, whose endpoints do not exist.
            "region_name": REGION,
            "admin": {
                "username": admin.username,
                "password": admin.password,
                "project_name": admin.project_name,
                "user_domain_name": DOMAIN,
                "project_domain_name": DOMAIN,
            },
        }

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a JSON file that only its owner reads; raises OSError."""
        write_private(self.folder / name, json.dumps(document, indent=2))

    def run(self, *words: str) -> None:
        """Run a command of Rally in its folder, and log what it prints.

        Raises LabError if it fails, or ToolError without Rally.
        """
        program = require_tool(venvs.RALLY, state_folder() / "tools")
        router = self.lab.router(1)
        command = [str(program), "--config-file", "rally.conf", *words]
        ended = subprocess.run(
            command_in(router.namespace, command),
            cwd=self.folder,
            # Rally keeps what it used last in the home folder.
            env={
                **inherited_environment(),
                **NO_PROXY,
                "HOME": str(self.folder.resolve()),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        path = self.folder / "rally.log"
        with path.open("a", encoding="utf-8") as log:
            log.write(ended.stdout)
        # 2 is also a scenario with iterations that failed, which the report has.
        accepted = (0, 2) if words[:2] == ("task", "start") else (0,)
        if ended.returncode not in accepted:
            message = f"`rally {' '.join(words)}` failed:\n{tail(path)}"
            raise LabError(message)
