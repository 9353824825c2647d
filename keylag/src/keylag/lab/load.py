"""Sends loads in a laboratory, and reads their samples."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keylag.jtl import JtlError, Sample
from keylag.jtl import read_samples as read_jtl
from keylag.lab.iproute import LabError, command_in
from keylag.lab.network import Host
from keylag.tools.tool import tail

KEYLAG: Final = str(Path(sys.executable).with_name("keylag"))


@dataclass(frozen=True)
class LabLoad:
    """A load of clients who send one call after the other."""

    plan: str
    """Name of a load plan."""
    seconds: int
    clients: int = 1
    properties: Mapping[str, str | int] = field(default_factory=dict)
    """More properties of the plan."""

    def command(
        self, keylag: Sequence[str], out: Path, target: Sequence[str]
    ) -> list[str]:
        """Return the command that sends it.

        `keylag` is the command of Keylag where the load begins, `out` a new folder for
        the samples, `target` the options of `keylag load` that name Keystone.
        """
        properties = {
            "threads": self.clients,
            "loops": -1,
            "ramp_seconds": 0,
            "duration_seconds": self.seconds,
            **self.properties,
        }
        return [
            *(*keylag, "load", self.plan, "--max-errors=100%"),
            f"--out={out.resolve()}",
            *target,
            *(f"--set={name}={value}" for name, value in properties.items()),
        ]

    def send(self, keylag: Sequence[str], out: Path, target: Sequence[str]) -> None:
        """Send it, and wait until it ends; raises LabError.

        Ctrl-C reaches the command as well; this waits until it has stopped JMeter.
        """
        process = subprocess.Popen(
            self.command(keylag, out, target),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, errors = process.communicate()
        except KeyboardInterrupt:
            process.wait()
            raise
        if process.returncode != 0:
            message = f"The load could not be sent:\n{errors}"
            raise LabError(message)

    @contextmanager
    def sending(
        self, keylag: Sequence[str], out: Path, target: Sequence[str]
    ) -> Iterator[None]:
        """Send it while the body runs; the samples are complete then.

        What the command says of errors is in a file beside `out`.  Raises OSError.
        """
        out.parent.mkdir(parents=True, exist_ok=True)
        with _errors_of(out).open("wb") as errors:
            process = subprocess.Popen(
                self.command(keylag, out, target),
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        try:
            yield
        finally:
            # `keylag load` stops JMeter then, and keeps the samples.
            process.terminate()
            process.wait()


def keylag_on(router: Host) -> list[str]:
    """Return the command of Keylag on a router."""
    return command_in(router.namespace, [KEYLAG])


def read_samples(out: Path) -> list[Sample]:
    """Return the samples of a load, with those of its set-up; raises LabError."""
    try:
        return read_jtl(out / "samples.jtl")[0]
    except JtlError as error:
        message = f"No call was answered: {error}"
        if _errors_of(out).exists():
            message += f"\nThe load said:\n{tail(_errors_of(out))}"
        raise LabError(message) from error


def _errors_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.log")
