"""A stack with real servers."""

import json
import socket
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import requests
from click.testing import CliRunner

from keylag import processes
from keylag.commands import status
from keylag.services import select_services
from keylag.stack import Stack

pytestmark = pytest.mark.stack

PROMETHEUS_SECONDS = 30


def issue(stack: Stack) -> requests.Response:
    """Issue a token with the administrator's password."""
    admin = stack.admin()
    domain = {"id": admin.user_domain_id}
    user = {"name": admin.username, "domain": domain, "password": admin.password}
    identity = {"methods": ["password"], "password": {"user": user}}
    scope = {"project": {"name": admin.project_name, "domain": domain}}
    body = {"auth": {"identity": identity, "scope": scope}}
    return requests.post(f"{admin.auth_url}/auth/tokens", json=body, timeout=30)


def ask_prometheus(stack: Stack, query: str) -> list[dict[str, str]]:
    """Return the labels of the series that a query finds."""
    url = f"{stack.url('prometheus')}/api/v1/query"
    answer = requests.get(url, params={"query": query}, timeout=10).json()
    return [series["metric"] for series in answer["data"]["result"]]


def test_every_service_is_healthy(stack: Stack) -> None:
    statuses = {entry.service: entry for entry in stack.status()}

    assert list(statuses) == [
        service.name for service in select_services(stack.options.extras)
    ]
    assert all(entry.healthy for entry in statuses.values())
    assert all(entry.log.exists() for entry in statuses.values())


def test_servers_listen_only_on_loopback(stack: Stack) -> None:
    pids = [one.process.pid for one in processes.find_processes(stack=stack.folder)]
    listening = {
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }

    assert listening == {"127.0.0.1"}


def test_token_has_the_catalog_of_this_stack(stack: Stack) -> None:
    response = issue(stack)

    catalog = response.json()["token"]["catalog"]
    endpoints = [endpoint for service in catalog for endpoint in service["endpoints"]]
    assert response.status_code == requests.codes.created
    assert "Server-Timing" in response.headers
    assert stack.admin().auth_url in {endpoint["url"] for endpoint in endpoints}
    assert len(endpoints) == 20
    assert {endpoint["region"] for endpoint in endpoints} == {"RegionOne", "RegionTwo"}


def test_files_with_passwords_are_private(stack: Stack) -> None:
    names = ("openrc", "clouds.yaml", "data/secrets.json", "data/create.sql")
    modes = {stat.S_IMODE((stack.folder / name).stat().st_mode) for name in names}

    assert modes == {0o600}
    assert stat.S_IMODE(stack.folder.stat().st_mode) == 0o700


def test_shell_reads_openrc(stack: Stack) -> None:
    command = f". {stack.folder / 'openrc'}; echo $OS_AUTH_URL $OS_PASSWORD"
    output = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=True
    ).stdout

    assert output.split() == [stack.admin().auth_url, stack.admin().password]


def test_selected_cache_is_used(stack: Stack) -> None:
    issue(stack)

    assert memcached_items(stack) > 0


def test_restart_changes_the_cache_and_empties_memcached(stack: Stack) -> None:
    before = stack.options
    issue(stack)
    try:
        stack.restart("keystone", options=replace(before, cache="null"))
        issue(stack)
        without = memcached_items(stack)
    finally:
        stack.restart("keystone", options=before)

    assert without == 0
    assert stack.is_up()


def memcached_items(stack: Stack) -> int:
    """Return how many items memcached holds."""
    address = ("127.0.0.1", stack.port("memcached"))
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(b"stats\r\nquit\r\n")
        output = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    stats = dict(line.split()[1:3] for line in output.splitlines() if "STAT" in line)
    return int(stats["curr_items"])


def test_prometheus_scrapes_every_job(stack: Stack) -> None:
    expected = {
        *("otlp", "otel-collector", "prometheus"),
        *("keylag-exporter", "keylag-diagnosis"),
    }
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    jobs: set[str] = set()
    while jobs != expected and time.monotonic() < deadline:
        jobs = {labels["job"] for labels in ask_prometheus(stack, "up == 1")}
        time.sleep(0.2)

    assert jobs == expected


def test_status_json_lists_the_services(stack: Stack) -> None:
    arguments = ["--state", str(stack.folder), "--output", "json"]
    result = CliRunner().invoke(status.command, arguments)

    read = {entry["service"]: entry for entry in json.loads(result.output)}
    assert result.exit_code == 0
    assert read["keystone"]["ports"] == {"keystone": stack.port("keystone")}
    assert Path(read["keystone"]["log"]).exists()


def test_command_lines_have_no_passwords(stack: Stack) -> None:
    words = " ".join(
        " ".join(one.process.cmdline())
        for one in processes.find_processes(stack=stack.folder)
    )

    assert "mariadbd" in words
    assert stack.admin().password not in words
