"""The OpenTelemetry Collector: what Keystone's workers push metrics and traces to."""

from pathlib import Path

from keylag.services.base import HOST, Ports, Service, Site, answers_http
from keylag.state import DEPLOY
from keylag.tools import ToolError

CONFIG = DEPLOY / "otel-collector" / "config.yaml"
TO_A_FILE = CONFIG.with_name("file.yaml")
KEEPERS = ("tempo", "jaeger")
"""Services that traces go to where a stack has them; each has a file beside CONFIG."""


def traces_file(folder: Path) -> Path:
    """Return where a stack keeps its traces: a line of OTLP's JSON for each batch."""
    return folder / "traces" / "traces.jsonl"


def _prepare(site: Site) -> None:
    """Make the folder of the traces; the rest it keeps in memory."""
    traces_file(site.folder).parent.mkdir(exist_ok=True)


def _keepers(site: Site) -> list[str]:
    return [name for name in KEEPERS if name in site.ports]


def _command(site: Site) -> list[str | Path]:
    files = [CONFIG, TO_A_FILE]
    files += [CONFIG.with_name(f"{name}.yaml") for name in _keepers(site)]
    if site.tools.otelcol is None:
        message = "The OpenTelemetry Collector is not built. Run `make setup`."
        raise ToolError(message)
    return [site.tools.otelcol, *(f"--config={file}" for file in files)]


def _environment(site: Site) -> dict[str, str]:
    addresses = {name: site.address(f"{name}-otlp") for name in _keepers(site)}
    return {
        **{f"KEYLAG_{name.upper()}_OTLP": at for name, at in addresses.items()},
        "KEYLAG_OTELCOL_OTLP_LISTEN": site.address("otlp"),
        "KEYLAG_OTELCOL_METRICS_LISTEN": site.address("otel-collector-metrics"),
        "KEYLAG_OTELCOL_HEALTH_LISTEN": site.address("otel-collector-health"),
        "KEYLAG_OTELCOL_TRACES_FILE": str(traces_file(site.folder)),
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
