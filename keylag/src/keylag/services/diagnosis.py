"""`keylag diagnose --listen`: the likely causes of slow token calls, as metrics."""

import sys
from pathlib import Path

from keylag.services.base import (
    Ports,
    Service,
    ServiceContext,
    http_ok,
    no_variables,
    prepare_nothing,
)

WINDOW = "5m"
"""What each diagnosis looks at."""


def _command(context: ServiceContext) -> list[str | Path]:
    return [
        Path(sys.executable).with_name("keylag"),
        "diagnose",
        f"--prometheus=http://{context.address('prometheus')}",
        f"--since={WINDOW}",
        f"--listen={context.address('diagnosis')}",
    ]


def _healthy(ports: Ports) -> bool:
    # Any other path is a scrape, and a scrape may diagnose.
    return http_ok(ports["diagnosis"], "/favicon.ico")


SERVICE = Service(
    name="diagnosis",
    ports=("diagnosis",),
    prepare=prepare_nothing,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice="`keylag diagnose --help` explains its options.",
    depends_on=("prometheus",),
    observes_only=True,
)
