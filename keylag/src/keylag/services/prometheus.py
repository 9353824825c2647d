"""Prometheus, which scrapes the Collector, the exporters and the diagnosis."""

import json
import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from keylag.paths import DATA, DEPLOY
from keylag.services import exporters, mysqld_exporter
from keylag.services.base import Ports, Service, ServiceContext, http_ok, no_variables

CONFIG = DEPLOY / "prometheus" / "prometheus.yml"
RULES = DATA / "dashboards" / "generated" / "rules"
TARGETS = {
    "otlp": ("otel-collector-metrics",),
    "otel-collector": ("otel-collector-self",),
    "keylag-exporter": ("exporters*", "*-exporters"),
    "keylag-diagnosis": ("diagnosis",),
    "node-exporter": (),
    "mysqld-exporter": (f"{mysqld_exporter.PREFIX}*",),
    "prometheus": ("prometheus",),
}
"""Patterns of the ports that each job of prometheus.yml scrapes."""
NODE_PREFIXES = (exporters.NODE_PREFIX, mysqld_exporter.PREFIX)
"""Begin the ports of exporters for a database node, whose name follows."""
SITE_LABELS = ("cluster", "region")
"""Resource attributes of Keystone that all targets have as labels, too."""


def _folder(context: ServiceContext) -> Path:
    return context.folder / "prometheus"


def _prepare(context: ServiceContext) -> None:
    # Prometheus looks for targets and rules beside its configuration.
    targets = _folder(context) / "targets"
    targets.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CONFIG, _folder(context) / CONFIG.name)
    shutil.copytree(RULES, _folder(context) / "rules", dirs_exist_ok=True)
    for job, patterns in TARGETS.items():
        found = [
            _target(context, port)
            for port in context.ports
            if any(fnmatchcase(port, one) for one in patterns)
        ]
        (targets / f"{job}.json").write_text(json.dumps(found))


def _target(context: ServiceContext, port: str) -> dict[str, Any]:
    """Return a target; that of a database node has its name as `instance`."""
    labels = _site_labels(context)
    for prefix in NODE_PREFIXES:
        if port.startswith(prefix):
            labels["instance"] = port.removeprefix(prefix)
    return {"targets": [context.address(port)], "labels": labels}


def _site_labels(context: ServiceContext) -> dict[str, str]:
    attributes = context.options.environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    pairs = (one.partition("=") for one in attributes.split(","))
    return {name: value for name, _, value in pairs if name in SITE_LABELS}


def _command(context: ServiceContext) -> list[str | Path]:
    return [
        context.tools.prometheus,
        f"--config.file={_folder(context) / CONFIG.name}",
        f"--storage.tsdb.path={_folder(context) / 'data'}",
        f"--web.listen-address={context.address('prometheus')}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    ]


def _healthy(ports: Ports) -> bool:
    return http_ok(ports["prometheus"], "/-/ready")


SERVICE = Service(
    name="prometheus",
    ports=("prometheus",),
    prepare=_prepare,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice=f"Check its configuration, {CONFIG}.",
    observes_only=True,
)
