"""A small service that auth_token protects, for whoever asks for it."""

from pathlib import Path

from keylag.services.base import Ports, Service, Site, answers_http, no_files
from keylag.services.keystone import REGION, UWSGI_CONFIG, export, telemetry
from keylag.state import DEPLOY

CODE = DEPLOY / "service"
MODULE = "keylag_service"
NAME = "keylag-service"
"""Of its user in Keystone, and of what its metrics are of."""
PROJECT = "service"
THREADS = 2
"""Of its one worker, which so knows all uses of a token."""


def _command(site: Site) -> list[str | Path]:
    uwsgi = site.tools.keystone / "bin" / "uwsgi"
    return [uwsgi, f"--ini={UWSGI_CONFIG}", f"--pythonpath={CODE}"]


def _auth_token(site: Site) -> dict[str, str]:
    """Return the options of [keystone_authtoken], as an operator would set them."""
    keystone = f"http://{site.address('keystone')}"
    return {
        "AUTH_TYPE": "password",
        "AUTH_URL": keystone,
        "WWW_AUTHENTICATE_URI": keystone,
        "USERNAME": NAME,
        "PASSWORD": site.secrets.service,
        "USER_DOMAIN_ID": "default",
        "PROJECT_NAME": PROJECT,
        "PROJECT_DOMAIN_ID": "default",
        "REGION_NAME": REGION,
        "MEMCACHED_SERVERS": site.address("memcached"),
    }


def _environment(site: Site) -> dict[str, str]:
    options = _auth_token(site).items()
    return {
        **{f"OS_KEYSTONE_AUTHTOKEN__{name}": value for name, value in options},
        **telemetry(),
        **export(site),
        "OTEL_SERVICE_NAME": NAME,
        "KEYLAG_UWSGI_LISTEN": site.address("service"),
        "KEYLAG_UWSGI_MODULE": f"{MODULE}:application",
        "KEYLAG_UWSGI_PROCESSES": "1",
        "KEYLAG_UWSGI_THREADS": str(THREADS),
        "KEYLAG_UWSGI_VENV": str(site.tools.keystone),
    }


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["service"], "/healthcheck")


SERVICE = Service(
    name="service",
    ports=("service",),
    prepare=no_files,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"It is {CODE / MODULE}.py, with options for auth_token.",
    needs=("keystone", "memcached"),
    watches=True,
)
