"""Prometheus, which scrapes the Collector, the exporters and the diagnosis."""

import json
import shutil
from pathlib import Path

from keylag.paths import DATA, DEPLOY
from keylag.services import second_node
from keylag.services.base import Ports, Service, ServiceContext, http_ok, no_variables

CONFIG = DEPLOY / "prometheus" / "prometheus.yml"
RULES = DATA / "dashboards" / "generated" / "rules"
TARGETS = {
    "otlp": ("otel-collector-metrics",),
    "otel-collector": ("otel-collector-self",),
    "keylag-exporter": ("exporters", second_node.EXPORTERS),
    "keylag-diagnosis": ("diagnosis",),
    "prometheus": ("prometheus",),
}
"""The ports that each job of prometheus.yml scrapes, if the stack has them."""


def _folder(context: ServiceContext) -> Path:
    return context.folder / "prometheus"


def _prepare(context: ServiceContext) -> None:
    # Prometheus looks for targets and rules beside its configuration.
    targets = _folder(context) / "targets"
    targets.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CONFIG, _folder(context) / CONFIG.name)
    shutil.copytree(RULES, _folder(context) / "rules", dirs_exist_ok=True)
    for job, ports in TARGETS.items():
        addresses = [context.address(port) for port in ports if port in context.ports]
        (targets / f"{job}.json").write_text(json.dumps([{"targets": addresses}]))


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
