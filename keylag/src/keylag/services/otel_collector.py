"""The OpenTelemetry Collector: what Keystone's workers push their metrics to."""

from pathlib import Path

from keylag.services.base import HOST, Ports, Service, Site, answers_http
from keylag.state import DEPLOY

CONFIG = DEPLOY / "otel-collector" / "config.yaml"


def _prepare(_: Site) -> None:
    """Nothing to make: it keeps all it has in memory."""


def _command(site: Site) -> list[str | Path]:
    return [site.tools.otelcol, f"--config={CONFIG}"]


def _environment(site: Site) -> dict[str, str]:
    return {
        "KEYLAG_OTELCOL_OTLP_LISTEN": site.address("otlp"),
        "KEYLAG_OTELCOL_METRICS_LISTEN": site.address("otel-collector-metrics"),
        "KEYLAG_OTELCOL_HEALTH_LISTEN": site.address("otel-collector-health"),
        "KEYLAG_OTELCOL_SELF_HOST": HOST,
        "KEYLAG_OTELCOL_SELF_PORT": str(site.ports["otel-collector-self"]),
    }


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["otel-collector-health"], "/")


SERVICE = Service(
    name="otel-collector",
    ports=(
        "otlp",
        "otel-collector-metrics",
        "otel-collector-health",
        "otel-collector-self",
    ),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Its configuration is {CONFIG}.",
    watches=True,
)
