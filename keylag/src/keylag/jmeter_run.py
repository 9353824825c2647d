"""Who sends a load: JMeter itself, or engines that it controls."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keylag.engine_log import EngineLog, explain
from keylag.jmeter_process import groovy_command, stop
from keylag.remote_engines import Access, Engine, controller_address

CHECK_SECONDS: Final = 2.0
"""Time between two checks of the engines."""
FAILED_CHECKS: Final = 2
"""An engine is lost after so many failed checks in a row."""
POLL_SECONDS: Final = 0.5
STOP_SECONDS: Final = 60.0
"""How long engines may take to stop a load and send their last samples."""
LAST_SAMPLES_SECONDS: Final = 2.0
"""Time between the end of an engine and the end of a controller that waits forever."""
STOP_SCRIPT: Final = """\
import org.apache.jmeter.engine.ClientJMeterEngine
import org.apache.jmeter.util.JMeterUtils
JMeterUtils.loadJMeterProperties(args[0])
args.drop(1).each { new ClientJMeterEngine(it).stopTest(true) }
"""
"""Calls the engines as JMeter's controller does, which cannot stop some of them."""


class LocalRun:
    """JMeter sends the load itself."""

    engines: Sequence[Engine] = ()
    advice: str = (
        "Check the URL, and the names and passwords of the users and of the service "
        "user."
    )
    """What to do if no request was sent."""

    def java_options(self) -> Sequence[str]:
        """Return more options for Java."""
        return ()

    def working_folder(self, _scratch: Path, out: Path) -> Path:
        """Return the folder in which JMeter starts."""
        return out

    def private_properties(self, _scratch: Path) -> Mapping[str, str]:
        """Return properties for a private file."""
        return {}

    def options(self, public: Path, _scratch: Path) -> list[str | Path]:
        """Return JMeter's options; `public` is the file of the plan's properties."""
        return ["-q", public]

    def watch(self, _log: Path) -> str:
        """Return why the load cannot go on; empty if it can."""
        return ""

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End the load."""
        stop(process)

    def explain(self, _log: Path) -> str:
        """Return why the load did not start; empty if unknown."""
        return ""


@dataclass
class RemoteRun(LocalRun):
    """Engines send the load, by JMeter's distributed mode; use an instance once."""

    engines: Sequence[Engine] = field()
    access: Access
    home: Path
    """JMeter's home folder."""
    callback: str = ""
    """Address of this machine for the engines; empty to choose one."""
    stop_engines: bool = False
    advice: str = (
        "Check the URL, and the users and the passwords with which the engines were "
        "started; the logs of the engines say more."
    )
    log: EngineLog = field(default_factory=lambda: EngineLog(Path()))
    _scratch: Path = field(default_factory=Path)
    _failed_checks: dict[Engine, int] = field(default_factory=dict)
    _next_check: float = 0

    def java_options(self) -> Sequence[str]:
        """Return the address of this machine for the engines."""
        address = self.callback or controller_address(self.engines)
        return [f"-Djava.rmi.server.hostname={address}"]

    def working_folder(self, scratch: Path, _out: Path) -> Path:
        """Return the scratch folder, which has the keystore."""
        return scratch

    def private_properties(self, scratch: Path) -> Mapping[str, str]:
        """Return how controller and engines connect."""
        self._scratch = scratch
        return self.access.private_properties(scratch)

    def options(self, public: Path, scratch: Path) -> list[str | Path]:
        """Return the options of JMeter's distributed mode."""
        # JMeter takes -G FILE apart at an equals sign.
        shutil.copy(public, scratch / "load.properties")
        return [
            *("-R", ",".join(map(str, self.engines)), "-Gload.properties"),
            *(["-X"] if self.stop_engines else []),
        ]

    def watch(self, log: Path) -> str:
        """Return which engine refused the load or was lost; empty for none."""
        self.log.path = log
        self.log.poll()
        if self.log.not_started:
            reason = explain(log) or f"See {log}."
            return f"The load did not start on {self.log.not_started}. {reason}"
        if time.monotonic() < self._next_check:
            return ""
        self._next_check = time.monotonic() + CHECK_SECONDS
        for engine in self.engines:
            ended = str(engine) in self.log.finished
            failed = not ended and bool(engine.connection_error())
            count = self._failed_checks.get(engine, 0) + 1 if failed else 0
            self._failed_checks[engine] = count
        if lost := self._lost():
            names = ", ".join(sorted(lost))
            return (
                f"Engine {names} was lost during the load. The samples that arrived "
                f"are kept; the load was stopped on the other engines. Look at the log "
                f"of {names}, start it again, and repeat the load."
            )
        return ""

    def _lost(self) -> set[str]:
        checks = self._failed_checks
        return {str(one) for one in checks if checks[one] >= FAILED_CHECKS}

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End the load on the engines that run it, and then the controller.

        JMeter's own StopTestNow also ends the load of another controller on an engine
        that refused this one.
        """
        stopped: set[str] = set()
        deadline = time.monotonic() + STOP_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            self.log.poll()
            running = self.log.running() - self._lost()
            if fresh := running - stopped:
                self._stop_load_of(fresh)
                stopped |= fresh
            elif not running and self._waits_forever():
                time.sleep(LAST_SAMPLES_SECONDS)
                break
            time.sleep(POLL_SECONDS)
        stop(process)

    def _waits_forever(self) -> bool:
        """Return whether JMeter waits for an engine that will not end the load."""
        return not self.log.sent or bool(self._lost() or self.log.not_started)

    def _stop_load_of(self, engines: set[str]) -> None:
        script = self._scratch / "stop.groovy"
        script.write_text(STOP_SCRIPT)
        command = groovy_command(self.home, script)
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*command, "secret.properties", *sorted(engines)],
                cwd=self._scratch,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                timeout=STOP_SECONDS,
                check=False,
            )

    def explain(self, log: Path) -> str:
        """Return why the load did not start; empty if unknown."""
        return explain(log)
