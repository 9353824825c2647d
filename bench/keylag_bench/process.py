"""Real Keystones, one process per arm, told over pipes what to call."""

import json
import select
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from keylag.launcher import StackError
from keylag.tools.tool import tail
from keylag_bench.rows import Sample
from keylag_bench.servers import Servers
from keylag_bench.tables import ARMS, CACHES, COMMON

WORKER = Path(__file__).parents[1] / "inside" / "worker.py"
PATIENCE_SECONDS = 120.0
"""How long a process may take for one answer."""
END_SECONDS = 10.0


class Worker:
    """One process."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            # In a session of its own: Ctrl-C is for us, and we end it.
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def tell(self, order: Mapping[str, object]) -> dict[str, Any]:
        """Give it an order and return its answer; StackError if there is none."""
        with suppress(BrokenPipeError):  # its log says more than this does
            _open(self._process.stdin).write(json.dumps(order).encode() + b"\n")
            _open(self._process.stdin).flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Wait for a line and read it; StackError if none comes."""
        output = _open(self._process.stdout)
        readable, _, _ = select.select([output], [], [], PATIENCE_SECONDS)
        line = output.readline() if readable else b""
        if not line:
            message = f"A Keystone did not answer. {self._log} ends:\n{tail(self._log)}"
            raise StackError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """End it; its input ends, and if that is not enough it is killed."""
        with suppress(BrokenPipeError):
            _open(self._process.stdin).close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _open(self._process.stdout).close()


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a pipe that was asked for."""
    if stream is None:
        message = "not a pipe"
        raise ValueError(message)
    return stream


class Processes:
    """The executor that measures: see keylag_bench.schedule.Executor."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._workers: dict[str, Worker] = {}

    def start(self, cache: str, arms: Sequence[str], hash_seed: int) -> None:
        """Start a process per arm, side by side, on empty caches."""
        self._servers.forget()
        for arm in arms:
            self._workers[arm] = self._start_one(cache, arm, hash_seed)
        for worker in self._workers.values():
            worker.answer()

    def _start_one(self, cache: str, name: str, hash_seed: int) -> Worker:
        arm = ARMS[name]
        options = {**COMMON, **CACHES[cache], **arm.environment}
        environment = {
            **self._servers.environment(name, options),
            "KEYLAG_BENCH_PASSWORD": self._servers.password,
            "PYTHONHASHSEED": str(hash_seed),
        }
        command = [str(self._servers.python), str(WORKER), arm.instrumentation]
        return Worker(command, environment, self._servers.log(name))

    def run(self, arm: str, call: str, requests: int, *, flush: bool = False) -> Sample:
        """Make one arm call; the others wait."""
        order = {"call": call, "requests": requests, "flush": flush}
        return Sample(**self._workers[arm].tell(order))

    def tidy(self, arm: str) -> None:
        """Have an arm collect its garbage."""
        self._workers[arm].tell({"tidy": True})

    def cache_calls(self) -> int:
        """Return how many calls the caches have had, from all arms."""
        return self._servers.cache_calls()

    def stop(self) -> None:
        """End all processes."""
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.end()
