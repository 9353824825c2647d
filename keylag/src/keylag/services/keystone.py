"""Keystone under uWSGI, in an environment of its own, with the collectors loaded."""

import os
from pathlib import Path

from keylag.services.base import Ports, Service, Site, answers_http
from keylag.services.mariadb import database_url
from keylag.services.redis import traces_url
from keylag.state import DEPLOY

CONFIG_FOLDER = DEPLOY / "keystone"
UWSGI_CONFIG = DEPLOY / "uwsgi.ini"
REGION = "RegionOne"
CACHE_BACKENDS = {
    "null": "dogpile.cache.null",
    "memcache_pool": "oslo_cache.memcache_pool",
    "memcached": "dogpile.cache.memcached",
    "pymemcache": "dogpile.cache.pymemcache",
    "redis": "dogpile.cache.redis",
}
"""What `--cache` may be, and the backend it stands for."""


def stats_socket(site: Site) -> Path:
    """Return where uWSGI tells how its workers are."""
    return site.run / "keystone-stats.sock"


def _keys(site: Site) -> Path:
    return site.data / "keystone"


def configuration(site: Site) -> dict[str, str]:
    """Return what oslo.config reads from the environment, in its own names."""
    return {
        "OS_KEYSTONE_CONFIG_DIR": str(CONFIG_FOLDER),
        "OS_DATABASE__CONNECTION": database_url(site),
        "OS_DEFAULT__PUBLIC_ENDPOINT": f"http://{site.address('keystone')}",
        "OS_FERNET_TOKENS__KEY_REPOSITORY": str(_keys(site) / "fernet-keys"),
        "OS_CREDENTIAL__KEY_REPOSITORY": str(_keys(site) / "credential-keys"),
        "OS_CACHE__BACKEND": CACHE_BACKENDS[site.options.cache],
        "OS_CACHE__MEMCACHE_SERVERS": site.address("memcached"),
        **_redis(site),
    }


def _redis(site: Site) -> dict[str, str]:
    """Return what is kept in Redis; no trace is taken in a stack without it.

    OSProfiler traces the requests that are signed with its key, and no other.
    """
    if "redis" not in site.ports:
        return {}
    return {
        "OS_CACHE__REDIS_SERVER": site.address("redis"),
        "OS_PROFILER__ENABLED": "true",
        "OS_PROFILER__TRACE_SQLALCHEMY": "true",
        "OS_PROFILER__HMAC_KEYS": site.secrets.profiler,
        "OS_PROFILER__CONNECTION_STRING": traces_url(site.ports["redis"]),
    }


def export(site: Site) -> dict[str, str]:
    """Return where telemetry goes; nowhere in a stack without a collector."""
    if "otlp" not in site.ports:
        return {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{site.address('otlp')}"}


def telemetry() -> dict[str, str]:
    """Return the switches of telemetry, OpenTelemetry's and ours, that stacks share."""
    lines = (CONFIG_FOLDER / "telemetry.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def _environment(site: Site) -> dict[str, str]:
    return {
        **configuration(site),
        **telemetry(),
        **export(site),
        "KEYLAG_UWSGI_LISTEN": site.address("keystone"),
        "KEYLAG_UWSGI_MODULE": site.options.module,
        "KEYLAG_UWSGI_PROCESSES": str(site.options.processes),
        "KEYLAG_UWSGI_THREADS": str(site.options.threads),
        "KEYLAG_UWSGI_VENV": str(site.tools.keystone),
        **site.options.environment,
    }


def _prepare(site: Site) -> None:
    """Create the tables, the keys and the first administrator."""
    done = _keys(site) / "bootstrapped"
    if done.exists():
        return
    environment = {
        **configuration(site),
        "OS_BOOTSTRAP_PASSWORD": site.secrets.admin,
        "PATH": f"{site.tools.keystone / 'bin'}:{os.environ.get('PATH', os.defpath)}",
    }
    site.once("keystone", ["sh", CONFIG_FOLDER / "setup.sh"], environment)
    done.touch()


def _command(site: Site) -> list[str | Path]:
    return [
        site.tools.keystone / "bin" / "uwsgi",
        f"--ini={UWSGI_CONFIG}",
        f"--stats={stats_socket(site)}",
    ]


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["keystone"], "/v3")


SERVICE = Service(
    name="keystone",
    ports=("keystone",),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=(
        "If a module cannot be imported, run `make setup`; if a table is missing, "
        "delete the stack's folder and run the command again."
    ),
    needs=("mariadb", "memcached"),
    renews=("memcached",),
)
