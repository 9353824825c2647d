"""Jaeger: keeps traces and shows them; started when the program is on the PATH."""

from pathlib import Path

from keylag.services.base import Ports, Service, Site, answers_http, no_files
from keylag.state import DEPLOY
from keylag.tools import find_program

CONFIG = DEPLOY / "jaeger" / "jaeger.yaml"


def _command(_: Site) -> list[str | Path]:
    return [find_program("jaeger"), f"--config={CONFIG}"]


def _environment(site: Site) -> dict[str, str]:
    return {
        "KEYLAG_JAEGER_LISTEN": site.address("jaeger"),
        "KEYLAG_JAEGER_GRPC_LISTEN": site.address("jaeger-grpc"),
        "KEYLAG_JAEGER_OTLP_LISTEN": site.address("jaeger-otlp"),
    }


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["jaeger"], "/api/v3/services")


SERVICE = Service(
    name="jaeger",
    ports=("jaeger", "jaeger-otlp", "jaeger-grpc"),
    prepare=no_files,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Its configuration is {CONFIG}, for Jaeger 2; take `jaeger` off the PATH "
    "to do without.",
    watches=True,
)
