"""YCSB, the client of a tenant, and what its calls took."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keylag import processes
from keylag.lab.iproute import LabError
from keylag.lab.neighbours import hdr_log
from keylag.lab.neighbours.cassandra import Cassandra, launcher, log_option
from keylag.lab.neighbours.hdr_log import Latencies
from keylag.lab.neighbours.options import NeighbourOptions
from keylag.lab.neighbours.window import Window
from keylag.lab.server import LabServer

THREADS: Final = 18
HEAP: Final = "128m"
START_SECONDS: Final = 60.0
WORKLOAD: Final[Mapping[str, object]] = {
    "workload": "site.ycsb.workloads.CoreWorkload",
    "readproportion": 0.5,
    "updateproportion": 0.5,
    "requestdistribution": "uniform",
    "threadcount": THREADS,
}
ENDLESS: Final = 2_000_000_000
"""Operations; 0 would be none."""
OPERATIONS: Final = ("READ", "UPDATE")


@dataclass(frozen=True)
class TenantFigures:
    """What the client of a tenant saw."""

    tenant: int
    operations_per_second: float
    p95_seconds: Mapping[str, float]
    """By operation; NaN without one."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON, which has null for what is unknown."""
        return {
            "tenant": self.tenant,
            "operations_per_second": self.operations_per_second,
            "p95_seconds": {
                name: None if math.isnan(value) else value
                for name, value in self.p95_seconds.items()
            },
        }


@dataclass(frozen=True)
class Ycsb(LabServer):
    """The client of a tenant, which reads and updates rows until it is stopped."""

    database: Cassandra

    @property
    def service(self) -> str:
        """The name of its process."""
        return f"ycsb-{self.database.number}"

    @property
    def folder(self) -> Path:
        """The folder with its results."""
        return self.database.folder.with_name("ycsb")

    def start(self, options: NeighbourOptions) -> None:
        """Write all rows, unless they are there, and start, in place of one that runs.

        With the rate UNLIMITED, each thread sends one operation after the other.
        Raises LabError, CommandError, ToolError or OSError.
        """
        self.stop()
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._is_loaded(options.records):
            self._load(options.records)
        for log in self.folder.glob("*.hdr"):
            log.unlink()
        properties = {
            "recordcount": options.records,
            "operationcount": ENDLESS,
            "target": options.rate_per_second,
            "measurementtype": "hdrhistogram",
            "hdrhistogram.fileoutput": "true",
            "hdrhistogram.output.path": f"{self.folder}/",
            "status.interval": 1,
        }
        self.start_command(self._command("-t", "-s", **properties), {})
        self.wait_until(self._has_results, START_SECONDS)

    def figures(self, window: Window) -> TenantFigures:
        """Return the figures of the whole seconds of a window.

        Raises LabError if there are none, or the client has ended.
        """
        self.require_pids()
        found = {name: self._latencies(name, window) for name in OPERATIONS}
        return TenantFigures(
            self.database.number,
            sum(one.per_second for one in found.values()),
            {name: one.quantile_seconds(0.95) for name, one in found.items()},
        )

    def _latencies(self, operation: str, window: Window) -> Latencies:
        path = self.folder / f"{operation}.hdr"
        try:
            return hdr_log.read(path.read_text(encoding="utf-8"), window)
        except (OSError, ValueError) as error:
            message = (
                f"{self.service} has no results of these seconds ({error}). "
                f"Its log: {self.log}"
            )
            raise LabError(message) from error

    def _has_results(self) -> bool:
        logs = [self.folder / f"{name}.hdr" for name in OPERATIONS]
        return all(one.exists() for one in logs)

    @property
    def _loaded(self) -> Path:
        """What YCSB reports about the rows that it wrote."""
        return self.folder / "load.txt"

    def _is_loaded(self, records: int) -> bool:
        if not self._loaded.exists():
            return False
        return f"[INSERT], Return=OK, {records}\n" in self._loaded.read_text("utf-8")

    def _load(self, records: int) -> None:
        properties = {"recordcount": records, "exportfile": self._loaded}
        command = self._command("-load", **properties)
        processes.run_and_wait(command, self.environment({}), self.log)
        if not self._is_loaded(records):
            message = f"{self.service} could not write all rows. Its log: {self.log}"
            raise LabError(message)

    def _command(self, *flags: str, **properties: object) -> list[str]:
        chosen = {**WORKLOAD, "cassandra.port": self.database.port, **properties}
        return [
            str(launcher()),
            *(f"-Xms{HEAP}", f"-Xmx{HEAP}", log_option()),
            "site.ycsb.Client",
            *flags,
            *("-db", "CassandraBinding"),
            *(
                word
                for name, value in chosen.items()
                for word in ("-p", f"{name}={value}")
            ),
        ]
