"""A small service behind auth_token; starts with `keylag up --with service`."""

from pathlib import Path

from keylag.paths import DEPLOY
from keylag.services.base import (
    Ports,
    Service,
    ServiceContext,
    http_ok,
    prepare_nothing,
)
from keylag.services.keystone import (
    REGION,
    UWSGI_CONFIG,
    telemetry_endpoint,
    telemetry_settings,
)

CODE_FOLDER = DEPLOY / "service"
MODULE = "keylag_service"
NAME = "keylag-service"
"""Name of its user in Keystone, and `service.name` of its telemetry."""
PROJECT = "service"
THREADS = 2
"""Threads of its single worker, which therefore sees all uses of a token."""


def _command(context: ServiceContext) -> list[str | Path]:
    uwsgi = context.tools.keystone / "bin" / "uwsgi"
    return [uwsgi, f"--ini={UWSGI_CONFIG}", f"--pythonpath={CODE_FOLDER}"]


def _auth_token_options(context: ServiceContext) -> dict[str, str]:
    keystone = f"http://{context.address('keystone')}"
    return {
        "AUTH_TYPE": "password",
        "AUTH_URL": keystone,
        "WWW_AUTHENTICATE_URI": keystone,
        "USERNAME": NAME,
        "PASSWORD": context.secrets.service,
        "USER_DOMAIN_ID": "default",
        "PROJECT_NAME": PROJECT,
        "PROJECT_DOMAIN_ID": "default",
        "REGION_NAME": REGION,
        "MEMCACHED_SERVERS": context.address("memcached"),
    }


def _environment(context: ServiceContext) -> dict[str, str]:
    options = _auth_token_options(context).items()
    return {
        **{f"OS_KEYSTONE_AUTHTOKEN__{name}": value for name, value in options},
        **telemetry_settings(),
        **telemetry_endpoint(context),
        "OTEL_SERVICE_NAME": NAME,
        "KEYLAG_UWSGI_LISTEN": context.address("service"),
        "KEYLAG_UWSGI_MODULE": f"{MODULE}:application",
        "KEYLAG_UWSGI_PROCESSES": "1",
        "KEYLAG_UWSGI_THREADS": str(THREADS),
        "KEYLAG_UWSGI_VENV": str(context.tools.keystone),
        **context.options.service,
    }


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["service"], "/healthcheck")


SERVICE = Service(
    name="service",
    ports=("service",),
    prepare=prepare_nothing,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=f"Check its code, {CODE_FOLDER / MODULE}.py, and the options of auth_token.",
    depends_on=("keystone", "memcached"),
    observes_only=True,
    extra="service",
)
