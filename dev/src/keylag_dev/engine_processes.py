"""Real engines on 127.0.0.1, for tests and benchmarks."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from keylag.remote_engines import CREATE_KEYSTORE, Engine

KEYLAG = Path(sys.executable).with_name("keylag")
READY_SECONDS = 300


@dataclass(frozen=True)
class EngineProcess:
    """A running `keylag engine`."""

    engine: Engine
    process: subprocess.Popen[bytes]
    out: Path

    def kill_jmeter(self) -> None:
        """Kill the JMeter below the command, as a crash of its machine would."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            child.kill()

    def log(self) -> str:
        """Return JMeter's log."""
        return (self.out / "jmeter.log").read_text(encoding="utf-8")


def create_keystore(folder: Path) -> Path:
    """Create a keystore as the how-to does."""
    path = folder / "rmi_keystore.jks"
    subprocess.run(
        [*CREATE_KEYSTORE.split(), path], check=True, capture_output=True, timeout=120
    )
    return path


@contextmanager
def engine_running(
    folder: Path, *options: str | Path, env: dict[str, str] | None = None
) -> Iterator[EngineProcess]:
    """Run `keylag engine` while the `with` body runs."""
    engine = Engine("127.0.0.1", _free_ports())
    out = folder / f"engine-{engine.port}"
    words = [KEYLAG, "engine", "--listen", str(engine), "--out", out, *options]
    with (folder / f"{engine.port}.log").open("wb") as output:
        process = subprocess.Popen(
            words, stdout=output, stderr=output, env={**os.environ, **(env or {})}
        )
    try:
        _wait_until_ready(process, Path(output.name))
        yield EngineProcess(engine, process, out)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait(60)


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while "waits for loads" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(log.read_text())
        time.sleep(0.2)


def wait_for_samples(path: Path, engines: Sequence[EngineProcess], number: int) -> None:
    """Wait until each engine has sent some samples into a JTL file."""
    deadline = time.monotonic() + READY_SECONDS
    text = ""
    while any(text.count(f"{one.engine}-") < number for one in engines):
        if time.monotonic() > deadline:
            raise TimeoutError(text)
        time.sleep(0.2)
        text = path.read_text() if path.exists() else ""


def _free_ports() -> int:
    """Return the first of two free ports, one after the other."""
    while True:
        with socket.socket() as one, socket.socket() as two, suppress(OSError):
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            two.bind(("127.0.0.1", port + 1))
            return port
