"""Tempo stores traces for Grafana; starts if the program is on the PATH."""

from pathlib import Path

from keylag.paths import DEPLOY
from keylag.services.base import HOST, Ports, Service, ServiceContext, http_ok
from keylag.tools import find_program

CONFIG = DEPLOY / "tempo" / "tempo.yaml"


def _folder(context: ServiceContext) -> Path:
    return context.folder / "tempo"


def _prepare(context: ServiceContext) -> None:
    _folder(context).mkdir(exist_ok=True)


def _command(_: ServiceContext) -> list[str | Path]:
    program = find_program("tempo")
    return [program, f"-config.file={CONFIG}", "-config.expand-env=true"]


def _environment(context: ServiceContext) -> dict[str, str]:
    return {
        "KEYLAG_TEMPO_HOST": HOST,
        "KEYLAG_TEMPO_PORT": str(context.ports["tempo"]),
        "KEYLAG_TEMPO_GRPC_PORT": str(context.ports["tempo-grpc"]),
        "KEYLAG_TEMPO_OTLP_LISTEN": context.address("tempo-otlp"),
        "KEYLAG_TEMPO_FOLDER": str(_folder(context)),
    }


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["tempo"], "/ready")


SERVICE = Service(
    name="tempo",
    ports=("tempo", "tempo-otlp", "tempo-grpc"),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Check its configuration, {CONFIG}. To start the stack without Tempo, "
    "remove `tempo` from the PATH.",
    observes_only=True,
)
