"""Tempo: keeps traces for Grafana; started when the program is on the PATH."""

from pathlib import Path

from keylag.services.base import HOST, Ports, Service, Site, answers_http
from keylag.state import DEPLOY
from keylag.tools import find_program

CONFIG = DEPLOY / "tempo" / "tempo.yaml"


def _folder(site: Site) -> Path:
    return site.folder / "tempo"


def _prepare(site: Site) -> None:
    """Make the folder of its blocks."""
    _folder(site).mkdir(exist_ok=True)


def _command(_: Site) -> list[str | Path]:
    program = find_program("tempo")
    return [program, f"-config.file={CONFIG}", "-config.expand-env=true"]


def _environment(site: Site) -> dict[str, str]:
    return {
        "KEYLAG_TEMPO_HOST": HOST,
        "KEYLAG_TEMPO_PORT": str(site.ports["tempo"]),
        "KEYLAG_TEMPO_GRPC_PORT": str(site.ports["tempo-grpc"]),
        "KEYLAG_TEMPO_OTLP_LISTEN": site.address("tempo-otlp"),
        "KEYLAG_TEMPO_FOLDER": str(_folder(site)),
    }


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["tempo"], "/ready")


SERVICE = Service(
    name="tempo",
    ports=("tempo", "tempo-otlp", "tempo-grpc"),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Its configuration is {CONFIG}; take `tempo` off the PATH to do without.",
    watches=True,
)
