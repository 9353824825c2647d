"""Measures rates of requests at the proxy server of a region, by swift-bench.

swift-bench writes all objects, then reads them, then deletes them, so each kind of
request has a rate of its own.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keylag.lab.galera import haproxy
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import NO_PROXY, LabError, command_in
from keylag.lab.network import Host
from keylag.lab.swift.lab import SwiftRegions
from keylag.lab.swift.measurement import CLIENTS
from keylag.lab.swift.servers import PROXY_PORT
from keylag.services.base import HOST, inherited_environment
from keylag.stack_info import StackInfo
from keylag.state import state_folder
from keylag.tools import venvs
from keylag.tools.install import require_tool
from keylag.tools.tool import tail

METHODS: Final[Mapping[str, str]] = {"PUTS": "PUT", "GETS": "GET", "DEL": "DELETE"}
"""By the words of swift-bench, in its order."""
OBJECTS: Final = 100
GETS: Final = 200
OBJECT_BYTES: Final = 1024
CONTAINERS: Final = 4
"""swift-bench makes them one after the other, before it measures."""
LOG: Final = "swift-bench.log"
LAST_LINE: Final = re.compile(
    r"INFO (\d+) (PUTS|GETS|DEL) \*\*FINAL\*\* \[(\d+) failures\], ([\d.]+)/s"
)
ADMIN_PROJECT: Final = (
    "SELECT id FROM keystone.project WHERE domain_id = 'default' AND name = 'admin'"
)


@dataclass(frozen=True)
class Rate:
    """The requests of a kind."""

    requests: int
    failed: int
    per_second: float
    """Of all requests, with one decimal."""


Rates = Mapping[str, Rate]
"""By the methods PUT, GET and DELETE."""


@dataclass(frozen=True)
class BenchLoad:
    """What swift-bench sends to the proxy server of a region."""

    region: int = 1
    clients: int = CLIENTS
    """Requests at the same time."""
    objects: int = OBJECTS
    """Each is written and deleted once."""
    gets: int = GETS
    """Each reads one of the objects, by chance."""

    def options(self) -> list[str]:
        """Return its options of swift-bench."""
        return [
            f"--concurrency={self.clients}",
            f"--num-objects={self.objects}",
            f"--num-gets={self.gets}",
            f"--object-size={OBJECT_BYTES}",
            f"--num-containers={CONTAINERS}",
        ]


def run_bench(lab: SwiftRegions, load: BenchLoad, out: Path) -> Rates:
    """Write, read and delete objects as Keystone's administrator.

    `out` is a folder for the log of swift-bench, which deletes its objects at the end,
    also after Ctrl-C.  Raises LabError, ToolError, OSError or pymysql.MySQLError.
    """
    router = lab.router(load.region)
    swift = require_tool(venvs.SWIFT, state_folder() / "tools")
    command = [
        *(str(swift.with_name("swift-bench")), "--auth_version=3"),
        f"--url={_storage_url(lab)}",
        *load.options(),
    ]
    out.mkdir(parents=True, exist_ok=True)
    log = out / LOG
    _run(command_in(router.namespace, command), _environment(lab, router), log)
    return read_rates(log.read_text("utf-8", "replace"))


def _storage_url(lab: SwiftRegions) -> str:
    """Return the URL of the administrator's objects; the catalog has example URLs."""
    ((project,),) = lab.keystones.cluster().nodes[0].query(ADMIN_PROJECT)
    return f"http://{HOST}:{PROXY_PORT}/v1/AUTH_{project}"


def _environment(lab: SwiftRegions, router: Host) -> dict[str, str]:
    """Return the environment of swift-bench, which has the password."""
    admin = StackInfo(site_folder(lab.folder, router.name)).admin()
    return {
        **inherited_environment(),
        **NO_PROXY,
        "ST_AUTH": f"{haproxy.keystone_url(router)}/v3",
        "ST_USER": f"{admin.project_name}:{admin.username}",
        "ST_KEY": admin.password,
    }


def _run(command: list[str], environment: dict[str, str], log: Path) -> None:
    """Run a command that logs to a file; raises LabError if it fails, or OSError.

    Ctrl-C reaches the command as well; this waits until it has deleted its objects.
    """
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, env=environment, stdout=stream, stderr=subprocess.STDOUT
        )
        try:
            process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
    if process.returncode != 0:
        message = (
            "swift-bench failed. Start Swift anew with `keylag lab swift-regions up` "
            f"if a server has ended. The end of {log}:\n{tail(log)}"
        )
        raise LabError(message)


def read_rates(log: str) -> Rates:
    """Return the rates in a log of swift-bench; raises LabError if one is missing."""
    found = {
        METHODS[kind]: Rate(int(requests), int(failed), float(per_second))
        for requests, kind, failed, per_second in LAST_LINE.findall(log)
    }
    for method in METHODS.values():
        one = found.get(method)
        if one is None or one.requests == one.failed or not one.per_second:
            message = (
                f"swift-bench has no rate of {method}. Its log is beside the results; "
                "those of Swift's servers are in `logs` of the laboratory's folder."
            )
            raise LabError(message)
    return found
