"""Runs one engine: a JMeter that sends its part of a load for a controller."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from keylag.jmeter import USER_PROPERTIES
from keylag.jmeter_process import (
    format_properties,
    java_command,
    jmeter_process,
    last_log_lines,
)
from keylag.load_target import ENGINE_PROPERTIES, LoadTarget
from keylag.remote_engines import Access, Engine, EngineAddressError, EngineError
from keylag.state import write_private

START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.2


def serve(  # noqa: PLR0913 - one for each part of an engine
    engine: Engine,
    access: Access,
    target: LoadTarget,
    *,
    home: Path,
    out: Path,
    on_ready: Callable[[], None],
) -> None:
    """Run an engine until Ctrl-C, or until a controller ends it.

    `target` has the users and the service user.  Raises JMeterError if JMeter or Java
    is missing, and EngineError if the engine fails.
    """
    access.require_keystore()
    for port in (engine.port, engine.port + 1):
        _require_free(engine.host, port)
    out = out.resolve()
    with tempfile.TemporaryDirectory(prefix="keylag-engine-") as folder:
        scratch = Path(folder)
        private = scratch / "private.properties"
        own = {
            name: value
            for name, value in {**target.properties, **target.secrets}.items()
            if name in ENGINE_PROPERTIES
        }
        properties = {
            **own,
            **access.private_properties(scratch),
            "server_port": str(engine.port),
            "server.rmi.localport": str(engine.port + 1),
            "jmeterengine.remote.system.exit": "true",
        }
        write_private(private, format_properties(properties))
        command = [
            *java_command(home, scratch, [f"-Djava.rmi.server.hostname={engine.host}"]),
            *("-s", "-j", out / "jmeter.log", "-q", USER_PROPERTIES, "-q", private),
        ]
        with jmeter_process(command, cwd=scratch, out=out) as process:
            _wait_until_ready(process, engine, out)
            private.unlink()
            on_ready()
            if process.wait():
                raise EngineError(_failure(process, out))


def _require_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            message = (
                f"{host}:{port}: {error.strerror or error}. An engine needs two ports, "
                "that of --listen and the next one, and an address of this machine."
            )
            raise EngineAddressError(message) from error


def _wait_until_ready(
    process: subprocess.Popen[bytes], engine: Engine, out: Path
) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if not engine.connection_error():
            return
        time.sleep(POLL_SECONDS)
    raise EngineError(_failure(process, out))


def _failure(process: subprocess.Popen[bytes], out: Path) -> str:
    code = process.poll()
    ended = "did not become ready" if code is None else f"ended with exit code {code}"
    lines = [f"  {line}" for line in last_log_lines(out / "jmeter.out")]
    start = f"The engine {ended}. The end of its output:"
    return "\n".join([start, *lines, f"Its log: {out / 'jmeter.log'}."])
