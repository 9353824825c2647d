"""docker-compose.yml: static checks, and Grafana if its image is there."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest
import requests
import yaml

from keylag.ports import allocate_ports
from keylag_exporters.sources import SOURCES

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ENV = dict(
    line.split("=", 1)
    for line in (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)\}")
PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d[\w.-]*@sha256:[0-9a-f]{64}")
"""A name, the tag of one release, and a digest."""
ENDED = "service_completed_successfully"
HEALTHY = "service_healthy"

each_service = pytest.mark.parametrize("name", SERVICES)


def mounts() -> Iterator[tuple[str, str]]:
    """Yield (service, source) of each mount; a source is a path or a volume."""
    for name, service in SERVICES.items():
        for mount in service.get("volumes", []):
            yield name, mount.split(":")[0]


def waits() -> Iterator[tuple[str, str, str]]:
    """Yield (service, dependency, condition)."""
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            yield name, other, how["condition"]


def is_one_shot(name: str) -> bool:
    """Return whether a service ends after its work."""
    return any(other == name and how == ENDED for _, other, how in waits())


def test_env_file_has_exactly_the_used_variables() -> None:
    assert set(VARIABLE.findall(TEXT)) == set(ENV)


def test_env_file_has_no_secrets() -> None:
    words = ("PASSWORD", "SECRET", "TOKEN", "KEY")

    assert [n for n in ENV if any(w in n.split("_") for w in words)] == []


@each_service
def test_images_are_pinned_in_the_env_file(name: str) -> None:
    build = SERVICES[name].get("build", {})
    images = [SERVICES[name].get("image"), *build.get("args", {}).values()]
    named = [VARIABLE.fullmatch(image) for image in images if image]

    assert named
    for found in named:
        assert found is not None
        assert PINNED.fullmatch(ENV[found[1]])


@pytest.mark.parametrize("name", [n for n, s in SERVICES.items() if "build" in s])
def test_dockerfiles_and_copied_files_exist(name: str) -> None:
    build = SERVICES[name]["build"]
    context = ROOT / build["context"]
    dockerfile = context / build.get("dockerfile", "Dockerfile")
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", dockerfile.read_text(), re.MULTILINE
    )

    assert copied or "--from" in dockerfile.read_text()
    missing = [p for line in copied for p in line.split() if not (context / p).exists()]
    assert missing == []


def test_mounts_exist_and_volumes_are_used() -> None:
    sources = {source for _, source in mounts()}
    paths = {source for source in sources if source.startswith(".")} - {"./out"}
    files = {s["env_file"] for s in SERVICES.values() if "env_file" in s}

    assert sorted(p for p in paths | files if not (ROOT / p).exists()) == []
    volumes = {source for source in sources if source[0] not in "./"}
    assert volumes == set(COMPOSE["volumes"])
    assert sources - paths - {"./out"} - volumes == {"/proc", "/sys"}


@each_service
def test_services_have_memory_limit_and_healthcheck(name: str) -> None:
    service = SERVICES[name]
    ended = is_one_shot(name) or service.get("profiles") == ["load"]

    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert ("healthcheck" in service) != ended


def test_depends_on_conditions_are_satisfiable() -> None:
    wrong = [
        (name, other)
        for name, other, how in waits()
        if how not in {ENDED, HEALTHY}
        or (how == HEALTHY and "healthcheck" not in SERVICES[other])
    ]

    assert wrong == []


@pytest.mark.parametrize("name", [n for n, s in SERVICES.items() if "ports" in s])
def test_ports_bind_to_loopback(name: str) -> None:
    for port in SERVICES[name]["ports"]:
        found = re.fullmatch(r"127\.0\.0\.1:\$\{(\w+_PORT)\}:\d+", port)
        assert found is not None
        assert ENV[found[1]].isdigit()


def test_prometheus_targets_are_services() -> None:
    folder = ROOT / "deploy" / "prometheus"
    jobs = yaml.safe_load((folder / "prometheus.yml").read_text())["scrape_configs"]
    files = [f for job in jobs for sd in job["file_sd_configs"] for f in sd["files"]]
    listed = [yaml.safe_load((folder / f).read_text()) for f in files]
    targets = [t for groups in listed for one in groups for t in one["targets"]]
    hosts = {target.split(":")[0] for target in targets}

    assert hosts - {"127.0.0.1"} <= set(SERVICES)
    assert {p.name for p in (folder / "targets").iterdir()} == {
        Path(f).name for f in files
    }


def test_containers_read_every_source() -> None:
    """`keylag-exporter all` runs the sources that have an option."""
    command = " ".join(SERVICES["exporters"]["command"])
    missing = {name for name in SOURCES if f"--{name}-" not in command}

    # The processes need the host's, and the host has the official exporter.
    assert missing == {"processes", "host"}
    assert SERVICES["processes"]["command"][0] == "processes"
    assert SERVICES["processes"]["pid"] == "host"
    assert "node-exporter" in SERVICES


def test_node_exporter_counts_nothing_of_its_own_network() -> None:
    assert "network_mode" not in SERVICES["node-exporter"]
    assert "--collector.netstat" not in SERVICES["node-exporter"]["command"]


@pytest.mark.parametrize("name", ["keystone", "service"])
def test_environment_has_all_variables_of_uwsgi(name: str) -> None:
    """UWSGI does not start if a variable of its configuration is missing."""
    text = (ROOT / "deploy/uwsgi.ini").read_text()
    used = re.findall(r"^[^;\n]*\$\((\w+)\)", text, re.MULTILINE)

    assert used
    assert set(used) <= set(SERVICES[name]["environment"])


@pytest.mark.parametrize(
    ("template", "script"),
    [
        ("deploy/mysql/accounts.sql", "deploy/mysql/accounts.sh"),
        ("deploy/proxysql/proxysql.cnf", "deploy/proxysql/start.sh"),
    ],
)
def test_shell_and_python_fill_templates_alike(template: str, script: str) -> None:
    text = (ROOT / template).read_text()
    names = VARIABLE.findall(text)
    values = {name: f"{number}-_a%" for number, name in enumerate(names)}
    filled = subprocess.run(
        ["sh", "-euc", f". ./deploy/fill.sh; fill {template}"],
        cwd=ROOT,
        env=values,
        capture_output=True,
        text=True,
        check=True,
    )

    assert names
    assert filled.stdout == Template(text).substitute(values)
    assert set(names) <= set(
        re.findall(r"^(\w+)=", (ROOT / script).read_text(), re.MULTILINE)
    )


def compose(*words: str, **variables: str) -> str:
    """Run docker compose and return its output; skips the test if it is missing."""
    docker = shutil.which("docker") or "false"
    if subprocess.run([docker, "compose", "version"], check=False).returncode != 0:
        pytest.skip("there is no docker compose on the PATH")
    return subprocess.run(
        [docker, "compose", *words],
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_docker_compose_accepts_the_file() -> None:
    compose("config", "--quiet")


@pytest.fixture(scope="module")
def grafana() -> Iterator[Callable[..., Any]]:
    """Grafana's API in its container; the caller is logged in as the page says."""
    wanted = ("secrets", "prometheus", "grafana")
    services = json.loads(compose("config", "--format", "json"))["services"]
    for image in sorted({services[name]["image"] for name in wanted}):
        inspect = ["docker", "image", "inspect", image]
        if subprocess.run(inspect, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"the image is not here: {image}")
    ports = allocate_ports(("GRAFANA_PORT", "PROMETHEUS_PORT"), {})

    def run(*words: str) -> str:
        variables = {name: str(port) for name, port in ports.items()}
        return compose("--project-name=keylag-tests", *words, **variables)

    def ask(path: str, body: dict[str, Any] | None = None) -> Any:
        answer = requests.request(
            "GET" if body is None else "POST",
            f"http://127.0.0.1:{ports['GRAFANA_PORT']}/api/{path}",
            json=body,
            auth=("admin", password),
            timeout=30,
        )
        assert answer.ok, answer.text
        return answer.json()

    try:
        run("up", "--wait", "grafana")
        password = run("exec", "-T", "grafana", "cat", "/secrets/grafana").strip()
        yield ask
    finally:
        run("down", "--volumes")


@pytest.mark.stack
def test_grafana_has_all_dashboards(grafana: Callable[..., Any]) -> None:
    files = (ROOT / "dashboards" / "generated" / "provisioned").glob("*.json")
    expected = {json.loads(file.read_text(encoding="utf-8"))["uid"] for file in files}

    # Grafana is healthy before it has read all files.
    for _ in range(60):
        found = {entry["uid"] for entry in grafana("search?type=dash-db")}
        if found == expected:
            break
        time.sleep(1)
    assert found == expected


@pytest.mark.stack
def test_grafana_has_all_alerts(grafana: Callable[..., Any]) -> None:
    file = ROOT / "dashboards" / "generated" / "alerting" / "keylag.yaml"
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    expected = {rule["uid"] for group in groups for rule in group["rules"]}

    found = {rule["uid"] for rule in grafana("v1/provisioning/alert-rules")}

    assert found == expected


@pytest.mark.stack
def test_grafana_reaches_prometheus(grafana: Callable[..., Any]) -> None:
    source = {"uid": "keylag-prometheus"}
    query = {"refId": "A", "datasource": source, "expr": "up{job='prometheus'}"}

    health = grafana(f"datasources/uid/{source['uid']}/health")
    found = grafana(
        "ds/query",
        {"from": "now-1m", "to": "now", "queries": [{**query, "instant": True}]},
    )

    assert health["status"] == "OK"
    (frame,) = found["results"]["A"]["frames"]
    assert frame["data"]["values"][1] == [1]
