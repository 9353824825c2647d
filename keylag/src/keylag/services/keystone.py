"""Keystone under uWSGI, in its own virtual environment, with keylag-otel."""

import os
from pathlib import Path

from keylag.paths import DEPLOY, SETUP_COMMAND
from keylag.services.base import HOST, Ports, Service, ServiceContext, http_ok
from keylag.services.mariadb import database_url
from keylag.services.redis import traces_url

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
"""Values of `--cache` and the backends that they select."""
SECOND_NODE = "second-node"
"""Another Keystone with a memcached of its own, if the stack has it."""
CACHE_SERVERS = ("memcached", "second-memcached")
"""Services; the second node has its own."""


def stats_socket(context: ServiceContext, node: str = "keystone") -> Path:
    """Return the path of the stats socket of a node's uWSGI."""
    return context.socket_folder / f"{node}-stats.sock"


def _keys_folder(context: ServiceContext) -> Path:
    return context.data / "keystone"


def oslo_variables(context: ServiceContext) -> dict[str, str]:
    """Return Keystone's configuration as variables that oslo.config reads."""
    return {
        "OS_KEYSTONE_CONFIG_DIR": str(CONFIG_FOLDER),
        "OS_DATABASE__CONNECTION": database_url(context),
        "OS_DEFAULT__PUBLIC_ENDPOINT": f"http://{context.address('keystone')}",
        "OS_FERNET_TOKENS__KEY_REPOSITORY": str(_keys_folder(context) / "fernet-keys"),
        "OS_CREDENTIAL__KEY_REPOSITORY": str(_keys_folder(context) / "credential-keys"),
        "OS_CACHE__BACKEND": CACHE_BACKENDS[context.options.cache],
        "OS_CACHE__MEMCACHE_SERVERS": ",".join(cache_servers(context.ports)),
        **_redis_variables(context),
    }


def cache_servers(ports: Ports) -> list[str]:
    """Return HOST:PORT of each memcached, in the order that all nodes have."""
    return [f"{HOST}:{ports[name]}" for name in CACHE_SERVERS if name in ports]


def _redis_variables(context: ServiceContext) -> dict[str, str]:
    # OSProfiler keeps its traces in Redis; it traces only signed requests.
    if "redis" not in context.ports:
        return {}
    return {
        "OS_CACHE__REDIS_SERVER": context.address("redis"),
        "OS_PROFILER__ENABLED": "true",
        "OS_PROFILER__TRACE_SQLALCHEMY": "true",
        "OS_PROFILER__HMAC_KEYS": context.secrets.profiler,
        "OS_PROFILER__CONNECTION_STRING": traces_url(context.ports["redis"]),
    }


def telemetry_endpoint(context: ServiceContext) -> dict[str, str]:
    """Return the OTLP endpoint; exports are off in a stack without a Collector."""
    if "otlp" not in context.ports:
        return {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{context.address('otlp')}"}


def telemetry_settings() -> dict[str, str]:
    """Return the settings of OpenTelemetry and keylag-otel that all stacks share."""
    lines = (CONFIG_FOLDER / "telemetry.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def environment(context: ServiceContext) -> dict[str, str]:
    """Return the environment that the uWSGI of each node has."""
    return {
        **oslo_variables(context),
        **telemetry_settings(),
        **telemetry_endpoint(context),
        "KEYLAG_UWSGI_LISTEN": context.address("keystone"),
        "KEYLAG_UWSGI_MODULE": context.options.module,
        "KEYLAG_UWSGI_PROCESSES": str(context.options.processes),
        "KEYLAG_UWSGI_THREADS": str(context.options.threads),
        "KEYLAG_UWSGI_VENV": str(context.tools.keystone),
        **context.options.environment,
    }


def _prepare(context: ServiceContext) -> None:
    done = _keys_folder(context) / "bootstrapped"
    if done.exists():
        return
    programs = context.tools.keystone / "bin"
    environment = {
        **oslo_variables(context),
        "OS_BOOTSTRAP_PASSWORD": context.secrets.admin,
        "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
    }
    context.run_helper("keystone", ["sh", CONFIG_FOLDER / "setup.sh"], environment)
    done.touch()


def server_command(context: ServiceContext, node: str) -> list[str | Path]:
    """Return the command of a node's uWSGI; several share Keystone's address."""
    shared = ["--reuse-port"] if SECOND_NODE in context.ports else []
    return [
        context.tools.keystone / "bin" / "uwsgi",
        f"--ini={UWSGI_CONFIG}",
        f"--stats={stats_socket(context, node)}",
        *shared,
    ]


def _command(context: ServiceContext) -> list[str | Path]:
    return server_command(context, SERVICE.name)


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["keystone"], "/v3")


SERVICE = Service(
    name="keystone",
    ports=("keystone",),
    prepare=_prepare,
    command=_command,
    environment=environment,
    healthy=_healthy,
    advice=(
        f"If an import fails, run `{SETUP_COMMAND}`. If a table is missing, delete the "
        "stack's folder and run the command again."
    ),
    depends_on=("mariadb", "memcached"),
    restart_with=(*CACHE_SERVERS, SECOND_NODE),
)
