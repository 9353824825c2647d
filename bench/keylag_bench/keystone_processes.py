"""Run one Keystone process per arm and control it through pipes."""

import json
import select
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from keylag.launcher import StackError
from keylag.tools.tool import tail
from keylag_bench.arms_and_workloads import ARMS, CACHES, COMMON
from keylag_bench.raw_results import TurnResult
from keylag_bench.servers import Servers

WORKER = Path(__file__).parents[1] / "inside" / "worker.py"
ANSWER_TIMEOUT_SECONDS = 120.0
"""Time limit for one answer of a process."""
EXIT_TIMEOUT_SECONDS = 10.0


class WorkerProcess:
    """One Keystone process, which reads orders and answers each with a line."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            # In a session of its own, so that Ctrl-C reaches only this process.
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def send_order(self, order: Mapping[str, object]) -> dict[str, Any]:
        """Send an order and return the answer; raises StackError without an answer."""
        with suppress(BrokenPipeError):  # the missing answer is reported with the log
            _require_pipe(self._process.stdin).write(json.dumps(order).encode() + b"\n")
            _require_pipe(self._process.stdin).flush()
        return self.read_answer()

    def read_answer(self) -> dict[str, Any]:
        """Wait for the next answer; raises StackError without an answer."""
        output = _require_pipe(self._process.stdout)
        readable, _, _ = select.select([output], [], [], ANSWER_TIMEOUT_SECONDS)
        line = output.readline() if readable else b""
        if not line:
            message = f"A Keystone did not answer. {self._log} ends:\n{tail(self._log)}"
            raise StackError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """Close the input of the process, and kill it if it does not exit."""
        with suppress(BrokenPipeError):
            _require_pipe(self._process.stdin).close()
        try:
            self._process.wait(EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _require_pipe(self._process.stdout).close()


def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        message = "not a pipe"
        raise ValueError(message)
    return stream


class ProcessExecutor:
    """Measures real processes; see keylag_bench.schedule.Executor."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._workers: dict[str, WorkerProcess] = {}

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Flush the caches, and start a process per arm, all at the same time."""
        self._servers.flush_caches()
        for arm in arms:
            self._workers[arm] = self._start_worker(cache, arm, hash_seed)
        for worker in self._workers.values():
            worker.read_answer()

    def _start_worker(self, cache: str, name: str, hash_seed: int) -> WorkerProcess:
        arm = ARMS[name]
        options = {**COMMON, **CACHES[cache], **arm.environment}
        environment = {
            **self._servers.environment(name, options),
            "KEYLAG_BENCH_PASSWORD": self._servers.password,
            "PYTHONHASHSEED": str(hash_seed),
        }
        command = [str(self._servers.python), str(WORKER), arm.instrumentation]
        return WorkerProcess(command, environment, self._servers.log(name))

    def run(
        self, arm: str, call: str, requests: int, *, flush: bool = False
    ) -> TurnResult:
        """Make calls in the process of one arm; the others wait."""
        order = {"call": call, "requests": requests, "flush": flush}
        return TurnResult(**self._workers[arm].send_order(order))

    def collect_garbage(self, arm: str) -> None:
        """Make a full garbage collection in the process of an arm."""
        self._workers[arm].send_order({"tidy": True})

    def cache_calls(self) -> int:
        """Return the number of calls that all caches have received."""
        return self._servers.cache_calls()

    def stop(self) -> None:
        """Stop all processes."""
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.stop()
