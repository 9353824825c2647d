"""What docker-compose.yml promises, read without an engine."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

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
ENDED = "service_completed_successfully"
HEALTHY = "service_healthy"

each_service = pytest.mark.parametrize("name", SERVICES)


def mounts() -> Iterator[tuple[str, str]]:
    """Give the source of each mount: a path or the name of a volume."""
    for name, service in SERVICES.items():
        for mount in service.get("volumes", []):
            yield name, mount.split(":")[0]


def waits() -> Iterator[tuple[str, str, str]]:
    """Give who waits for whom to be what."""
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            yield name, other, how["condition"]


def ends(name: str) -> bool:
    """Tell whether a service does its work and ends."""
    return any(other == name and how == ENDED for _, other, how in waits())


def test_every_variable_is_set_and_used() -> None:
    """The file's variables are those of .env, each way."""
    assert set(VARIABLE.findall(TEXT)) == set(ENV)


def test_nothing_secret_is_in_the_environment_file() -> None:
    """Passwords are made at the first start."""
    words = ("PASSWORD", "SECRET", "TOKEN", "KEY")

    assert [n for n in ENV if any(w in n.split("_") for w in words)] == []


@each_service
def test_images_come_pinned_from_the_environment_file(name: str) -> None:
    """A service has an image of .env or is built from one."""
    build = SERVICES[name].get("build", {})
    images = [SERVICES[name].get("image"), *build.get("args", {}).values()]
    named = [VARIABLE.fullmatch(image) for image in images if image]

    assert named
    for found in named:
        assert found is not None
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d[\w.-]*", ENV[found[1]])


@pytest.mark.parametrize("name", [n for n, s in SERVICES.items() if "build" in s])
def test_what_is_built_is_there(name: str) -> None:
    """Its Dockerfile exists, and everything that it copies."""
    build = SERVICES[name]["build"]
    context = ROOT / build["context"]
    dockerfile = context / build.get("dockerfile", "Dockerfile")
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", dockerfile.read_text(), re.MULTILINE
    )

    assert copied or "--from" in dockerfile.read_text()
    missing = [p for line in copied for p in line.split() if not (context / p).exists()]
    assert missing == []


def test_every_mount_exists() -> None:
    """Paths are there, volumes are declared, and declared ones are used."""
    sources = {source for _, source in mounts()}
    paths = {source for source in sources if source.startswith(".")} - {"./out"}
    files = {s["env_file"] for s in SERVICES.values() if "env_file" in s}

    assert sorted(p for p in paths | files if not (ROOT / p).exists()) == []
    assert {s for s in sources if not s.startswith(".")} == set(COMPOSE["volumes"])


@each_service
def test_limits_and_health(name: str) -> None:
    """Each has a memory limit, and says whether it works unless it ends."""
    service = SERVICES[name]
    ended = ends(name) or service.get("profiles") == ["load"]

    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert ("healthcheck" in service) != ended


def test_each_waits_for_what_can_come_true() -> None:
    """For the end of what ends, for the health of what has a check."""
    wrong = [
        (name, other)
        for name, other, how in waits()
        if how not in {ENDED, HEALTHY}
        or (how == HEALTHY and "healthcheck" not in SERVICES[other])
    ]

    assert wrong == []


@pytest.mark.parametrize("name", [n for n, s in SERVICES.items() if "ports" in s])
def test_ports_are_open_on_this_machine_only(name: str) -> None:
    """And their numbers can be chosen."""
    for port in SERVICES[name]["ports"]:
        found = re.fullmatch(r"127\.0\.0\.1:\$\{(\w+_PORT)\}:\d+", port)
        assert found is not None
        assert ENV[found[1]].isdigit()


def test_prometheus_scrapes_services_that_are_there() -> None:
    """Each job has its targets, and each target is a service."""
    folder = ROOT / "deploy" / "prometheus"
    jobs = yaml.safe_load((folder / "prometheus.yml").read_text())["scrape_configs"]
    files = [f for job in jobs for sd in job["file_sd_configs"] for f in sd["files"]]
    listed = [yaml.safe_load((folder / f).read_text()) for f in files]
    hosts = {t.split(":")[0] for (group,) in listed for t in group["targets"]}

    assert hosts - {"127.0.0.1"} <= set(SERVICES)
    assert {p.name for p in (folder / "targets").iterdir()} == {
        Path(f).name for f in files
    }


def test_the_exporters_container_reads_every_source() -> None:
    """`keylag-exporter all` runs the sources that have an option."""
    command = " ".join(SERVICES["exporters"]["command"])

    assert [name for name in SOURCES if f"--{name}-" not in command] == []


@pytest.mark.parametrize("name", ["keystone", "service"])
def test_uwsgi_gets_every_variable(name: str) -> None:
    """It would not start without one that its configuration names."""
    text = (ROOT / "deploy/uwsgi.ini").read_text()
    asked = re.findall(r"^[^;\n]*\$\((\w+)\)", text, re.MULTILINE)

    assert asked
    assert set(asked) <= set(SERVICES[name]["environment"])


@pytest.mark.parametrize(
    ("template", "script"),
    [
        ("deploy/mysql/accounts.sql", "deploy/mysql/accounts.sh"),
        ("deploy/proxysql/proxysql.cnf", "deploy/proxysql/start.sh"),
    ],
)
def test_a_container_fills_in_as_the_native_stack_does(
    template: str, script: str
) -> None:
    """Its script sets every name, and the shell makes of it what Python makes."""
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


def test_compose_itself_takes_the_file() -> None:
    """Where Docker is installed; no engine is asked."""
    docker = shutil.which("docker") or "false"
    if subprocess.run([docker, "compose", "version"], check=False).returncode != 0:
        pytest.skip("there is no docker compose on the PATH")

    subprocess.run([docker, "compose", "config", "--quiet"], cwd=ROOT, check=True)
