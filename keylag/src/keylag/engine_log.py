"""What the controller's log tells about the engines of a running load."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_EVENT: Final = re.compile(r"(Started|Finished) remote host: +(\S+) \((\d+)\)")
_SENT: Final = re.compile(r"sent run command to (\S+)")
_NOT_STARTED: Final = re.compile(r"remote engines have not started:\[(.*)\]")

_SAME_KEYSTORE: Final = (
    "Copy one keystore to all machines; it must not be expired, and all need its "
    "password in KEYLAG_KEYSTORE_PASSWORD if that is not JMeter's default."
)
_EXPLANATIONS: Final[Mapping[str, str]] = {
    r"Engine is busy": (
        "An engine is busy with another load. Wait for its end, or restart the engine."
    ),
    r"serialVersionUID|InvalidClassException|UnmarshalException.*ClassNotFound": (
        "An engine has another version of JMeter. Install the same one everywhere."
    ),
    r"UnsupportedClassVersionError": (
        "Controller and engines have different Javas. Install the same everywhere."
    ),
    r"keystore password was incorrect|Keystore was tampered": _SAME_KEYSTORE,
    r"non-JRMP server|Unsupported or unrecognized SSL message": (
        "One side uses TLS and the other does not. Use --no-tls on both or on neither."
    ),
    r"CertificateException|SSLHandshakeException|PKIX|certificate": _SAME_KEYSTORE,
    r"onnection refused to host: (?P<host>[^;\s]+)|NoRouteToHost|ConnectIOException": (
        "A connection between controller and engine failed. An engine announces the "
        "address that --listen names, and answers to the address of --callback; check "
        "both, and the firewalls."
    ),
    r"NotBoundException": "No JMeter engine listens there. Check the ports.",
}
"""A pattern of the log; the cause, and what to do."""


@dataclass
class EngineLog:
    """Reads the log of the controller while it grows."""

    path: Path
    started: dict[str, float] = field(default_factory=dict)
    """Engine to the time of its start by the controller's clock, in seconds."""
    finished: dict[str, float] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    """Engines that accepted the load."""
    not_started: str = ""
    """Engines that refused the load."""
    _offset: int = 0

    def poll(self) -> None:
        """Read the lines since the last call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            stream.seek(self._offset)
            complete, newline, _ = stream.read().rpartition(b"\n")
        self._offset += len(complete + newline)
        for line in complete.decode(errors="replace").splitlines():
            self._read(line)

    def running(self) -> set[str]:
        """Return the engines that accepted the load and have not ended it."""
        return self.sent - set(self.finished)

    def _read(self, line: str) -> None:
        if event := _EVENT.search(line):
            times = self.started if event[1] == "Started" else self.finished
            times[event[2]] = int(event[3]) / 1000
        elif accepted := _SENT.search(line):
            self.sent.add(accepted[1])
        elif refused := _NOT_STARTED.search(line):
            self.not_started = refused[1]


def explain(log: Path) -> str:
    """Return the cause of a failed start and what to do; empty if unknown."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return next(
        (
            advice
            for pattern, advice in _EXPLANATIONS.items()
            if re.search(pattern, text)
        ),
        "",
    )
