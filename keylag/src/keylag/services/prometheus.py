"""Prometheus: keeps what the collector shows."""

import json
import shutil
from pathlib import Path

from keylag.services.base import Ports, Service, Site, answers_http, nothing
from keylag.state import CHECKOUT, DEPLOY

CONFIG = DEPLOY / "prometheus" / "prometheus.yml"
RULES = CHECKOUT / "dashboards" / "generated" / "rules"
TARGETS = {
    "otlp": "otel-collector-metrics",
    "otel-collector": "otel-collector-self",
    "keylag-exporter": "exporters",
    "prometheus": "prometheus",
}
"""Which port each job of prometheus.yml scrapes; the name of the file is the job's."""


def _folder(site: Site) -> Path:
    return site.folder / "prometheus"


def _prepare(site: Site) -> None:
    """Copy the configuration: it looks for targets and rules beside itself."""
    targets = _folder(site) / "targets"
    targets.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CONFIG, _folder(site) / CONFIG.name)
    shutil.copytree(RULES, _folder(site) / "rules", dirs_exist_ok=True)
    for job, port in TARGETS.items():
        listed = json.dumps([{"targets": [site.address(port)]}])
        (targets / f"{job}.json").write_text(listed)


def _command(site: Site) -> list[str | Path]:
    return [
        site.tools.prometheus,
        f"--config.file={_folder(site) / CONFIG.name}",
        f"--storage.tsdb.path={_folder(site) / 'data'}",
        f"--web.listen-address={site.address('prometheus')}",
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    ]


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["prometheus"], "/-/ready")


SERVICE = Service(
    name="prometheus",
    ports=("prometheus",),
    prepare=_prepare,
    command=_command,
    environment=nothing,
    healthy=_healthy,
    advice=f"Its configuration is {CONFIG}.",
    watches=True,
)
