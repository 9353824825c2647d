"""Grafana: shows what Prometheus has; started when the program is on the PATH."""

from pathlib import Path

from keylag.services.base import HOST, Ports, Service, Site, answers_http
from keylag.state import CHECKOUT, DEPLOY
from keylag.tools import find_program

PROVISIONING = DEPLOY / "grafana" / "provisioning"
DASHBOARDS = CHECKOUT / "dashboards" / "generated" / "provisioned"
PROGRAM = "grafana"
TEMPO_PORT = 3200
"""Its usual one."""
DEFAULTS = Path("conf") / "defaults.ini"
PACKAGED_HOME = Path("/usr/share/grafana")
"""Where Grafana's own packages put what it serves."""


def home(program: Path) -> Path:
    """Return the folder with Grafana's pages: beside the program, or the package's."""
    beside = program.resolve().parents[1]
    return beside if (beside / DEFAULTS).exists() else PACKAGED_HOME


def _folder(site: Site) -> Path:
    return site.folder / "grafana"


def _prepare(site: Site) -> None:
    """Make the folder of its own database; dashboards and sources are provisioned."""
    _folder(site).mkdir(exist_ok=True, mode=0o700)


def _command(_: Site) -> list[str | Path]:
    program = find_program(PROGRAM)
    return [program, "server", f"--homepath={home(program)}"]


def _environment(site: Site) -> dict[str, str]:
    """Return its settings: who is on this machine may look, and nobody may change."""
    return {
        "GF_SERVER_HTTP_ADDR": HOST,
        "GF_SERVER_HTTP_PORT": str(site.ports["grafana"]),
        "GF_PATHS_DATA": str(_folder(site)),
        "GF_PATHS_LOGS": str(_folder(site)),
        "GF_PATHS_PROVISIONING": str(PROVISIONING),
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        "GF_SECURITY_ADMIN_PASSWORD": site.secrets.admin,
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "KEYLAG_DASHBOARDS": str(DASHBOARDS),
        "KEYLAG_PROMETHEUS_URL": f"http://{site.address('prometheus')}",
        # Without a Tempo the data source is there and finds nobody.
        "KEYLAG_TEMPO_URL": f"http://{HOST}:{site.ports.get('tempo', TEMPO_PORT)}",
    }


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["grafana"], "/api/health")


SERVICE = Service(
    name="grafana",
    ports=("grafana",),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Its data sources and dashboards come from {PROVISIONING}.",
)
