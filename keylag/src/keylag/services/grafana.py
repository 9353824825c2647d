"""Grafana with Keylag's dashboards and alerts; starts if it is on the PATH."""

import shutil
from pathlib import Path

from keylag.paths import DATA, DEPLOY
from keylag.services.base import HOST, Ports, Service, ServiceContext, http_ok
from keylag.tools import find_program

PROVISIONING = DEPLOY / "grafana" / "provisioning"
DASHBOARDS = DATA / "dashboards" / "generated" / "provisioned"
ALERTS = DATA / "dashboards" / "generated" / "alerting"
PROGRAM = "grafana"
TEMPO_PORT = 3200
"""Tempo's default port."""
DEFAULTS = Path("conf") / "defaults.ini"
PACKAGED_HOME = Path("/usr/share/grafana")
"""Home folder of Grafana's Debian and RPM packages."""


def home_folder(program: Path) -> Path:
    """Return Grafana's home folder: that of its archive, or that of its packages."""
    archive = program.resolve().parents[1]
    return archive if (archive / DEFAULTS).exists() else PACKAGED_HOME


def _folder(context: ServiceContext) -> Path:
    return context.folder / "grafana"


def _provisioning(context: ServiceContext) -> Path:
    """Return the folder of what Grafana reads at its start."""
    return _folder(context) / "provisioning"


def _prepare(context: ServiceContext) -> None:
    _folder(context).mkdir(exist_ok=True, mode=0o700)
    # Grafana looks for alerts beside data sources and dashboards.
    folder = _provisioning(context)
    shutil.copytree(PROVISIONING, folder, dirs_exist_ok=True)
    shutil.copytree(ALERTS, folder / "alerting", dirs_exist_ok=True)


def _command(_: ServiceContext) -> list[str | Path]:
    program = find_program(PROGRAM)
    return [program, "server", f"--homepath={home_folder(program)}"]


def _environment(context: ServiceContext) -> dict[str, str]:
    # Anonymous users may view, but not edit.
    return {
        "GF_SERVER_HTTP_ADDR": HOST,
        "GF_SERVER_HTTP_PORT": str(context.ports["grafana"]),
        "GF_PATHS_DATA": str(_folder(context)),
        "GF_PATHS_LOGS": str(_folder(context)),
        "GF_PATHS_PROVISIONING": str(_provisioning(context)),
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        # Viewers may open Explore, where exemplars lead; they cannot save anything.
        "GF_USERS_VIEWERS_CAN_EDIT": "true",
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": str(DASHBOARDS / "home.json"),
        "GF_SECURITY_ADMIN_PASSWORD": context.secrets.admin,
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "GF_PLUGINS_PREINSTALL_DISABLED": "true",
        "GF_PLUGINS_PUBLIC_KEY_RETRIEVAL_DISABLED": "true",
        "KEYLAG_DASHBOARDS": str(DASHBOARDS),
        "KEYLAG_PROMETHEUS_URL": f"http://{context.address('prometheus')}",
        # Without Tempo the data source exists and finds no server.
        "KEYLAG_TEMPO_URL": f"http://{HOST}:{context.ports.get('tempo', TEMPO_PORT)}",
    }


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["grafana"], "/api/health")


SERVICE = Service(
    name="grafana",
    ports=("grafana",),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Check its provisioning in {PROVISIONING}.",
    observes_only=True,
)
