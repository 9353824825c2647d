"""The OpenTelemetry Collector, which receives metrics and traces of Keystone."""

from pathlib import Path

from keylag.paths import DEPLOY, SETUP_COMMAND
from keylag.services.base import HOST, Ports, Service, ServiceContext, http_ok
from keylag.tools import ToolError

CONFIG = DEPLOY / "otel-collector" / "config.yaml"
FILE_EXPORT_CONFIG = CONFIG.with_name("file.yaml")
EXPIRATION = "30s"
"""After this time without exports a series ends; this stack exports every 5 s."""
TRACE_STORES = ("tempo", "jaeger")
"""Services that store traces; each has a configuration file beside CONFIG."""


def traces_file(folder: Path) -> Path:
    """Return the path of a stack's traces: one line of OTLP JSON for each batch."""
    return folder / "traces" / "traces.jsonl"


def _prepare(context: ServiceContext) -> None:
    traces_file(context.folder).parent.mkdir(exist_ok=True)


def _trace_stores(context: ServiceContext) -> list[str]:
    return [name for name in TRACE_STORES if name in context.ports]


def _command(context: ServiceContext) -> list[str | Path]:
    files = [CONFIG, FILE_EXPORT_CONFIG]
    files += [CONFIG.with_name(f"{name}.yaml") for name in _trace_stores(context)]
    if context.tools.otelcol is None:
        message = f"The OpenTelemetry Collector is not built. Run `{SETUP_COMMAND}`."
        raise ToolError(message)
    return [context.tools.otelcol, *(f"--config={file}" for file in files)]


def _environment(context: ServiceContext) -> dict[str, str]:
    addresses = {
        name: context.address(f"{name}-otlp") for name in _trace_stores(context)
    }
    return {
        **{f"KEYLAG_{name.upper()}_OTLP": at for name, at in addresses.items()},
        "KEYLAG_OTELCOL_OTLP_LISTEN": context.address("otlp"),
        "KEYLAG_OTELCOL_METRICS_LISTEN": context.address("otel-collector-metrics"),
        "KEYLAG_OTELCOL_HEALTH_LISTEN": context.address("otel-collector-health"),
        "KEYLAG_OTELCOL_EXPIRATION": EXPIRATION,
        "KEYLAG_OTELCOL_TRACES_FILE": str(traces_file(context.folder)),
        "KEYLAG_OTELCOL_SELF_HOST": HOST,
        "KEYLAG_OTELCOL_SELF_PORT": str(context.ports["otel-collector-self"]),
    }


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["otel-collector-health"], "/")


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
    advice=f"Check its configuration, {CONFIG}.",
    observes_only=True,
)
