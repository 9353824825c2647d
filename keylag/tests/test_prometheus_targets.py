"""The targets of a stack's Prometheus, and their labels."""

import json
from collections.abc import Mapping
from pathlib import Path

from keylag.lab.galera.site import resource_attributes
from keylag.lab.network import Network
from keylag.services import prometheus
from keylag.services.base import Secrets, ServiceContext, StackOptions

PORTS = {"exporters": 20001, "exporters-a1": 20002, "mysqld-exporter-a1": 20003}


def labels(
    folder: Path, environment: Mapping[str, str], job: str = "keylag-exporter"
) -> list[dict[str, str]]:
    """Return the labels of a job's targets in a stack."""
    options = StackOptions(environment=environment)
    context = ServiceContext(folder, None, options, PORTS, Secrets())  # type: ignore[arg-type]
    prometheus.SERVICE.prepare(context)
    file = folder / "prometheus" / "targets" / f"{job}.json"
    return [one["labels"] for one in json.loads(file.read_text())]


def test_exporters_have_the_labels_of_their_site(tmp_path: Path) -> None:
    router = Network(tmp_path, 0).sites[1].router
    attributes = resource_attributes("swift-regions", router)

    found = labels(tmp_path, {"OTEL_RESOURCE_ATTRIBUTES": attributes})

    site = {"cluster": "swift-regions", "region": "b"}
    assert found == [site, {**site, "instance": "a1"}]


def test_a_stack_without_a_site_labels_its_database_nodes_only(tmp_path: Path) -> None:
    assert labels(tmp_path, {}) == [{}, {"instance": "a1"}]


def test_a_mysqld_exporter_has_the_name_of_its_node(tmp_path: Path) -> None:
    assert labels(tmp_path, {}, "mysqld-exporter") == [{"instance": "a1"}]
