"""Jaeger stores and shows traces; starts if the program is on the PATH."""

from pathlib import Path

from keylag.paths import DEPLOY
from keylag.services.base import (
    Ports,
    Service,
    ServiceContext,
    http_ok,
    prepare_nothing,
)
from keylag.tools import find_program

CONFIG = DEPLOY / "jaeger" / "jaeger.yaml"


def _command(_: ServiceContext) -> list[str | Path]:
    return [find_program("jaeger"), f"--config={CONFIG}"]


def _environment(context: ServiceContext) -> dict[str, str]:
    return {
        "KEYLAG_JAEGER_LISTEN": context.address("jaeger"),
        "KEYLAG_JAEGER_GRPC_LISTEN": context.address("jaeger-grpc"),
        "KEYLAG_JAEGER_OTLP_LISTEN": context.address("jaeger-otlp"),
    }


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["jaeger"], "/api/v3/services")


SERVICE = Service(
    name="jaeger",
    ports=("jaeger", "jaeger-otlp", "jaeger-grpc"),
    prepare=prepare_nothing,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Check its configuration, {CONFIG}; it needs Jaeger 2. To start the stack "
    "without Jaeger, remove `jaeger` from the PATH.",
    observes_only=True,
)
