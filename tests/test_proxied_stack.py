"""ProxySQL between Keystone and its database, if it is installed."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pymysql
import pytest
import requests

from keylag import processes
from keylag.demo import SAMPLE_CLOUD
from keylag.services import select_services
from keylag.stack import Stack, StackOptions
from keylag.stack_record import StackRecord, load_secrets
from keylag.tools import ToolError, Tools

EXTRAS = ("proxysql",)
PROMETHEUS_SECONDS = 60
CALLS = 'keylag_proxysql_calls_total{hostgroup="10"}'
SELECTS = 'keylag_proxysql_command_duration_seconds_count{command="SELECT"}'

pytestmark = pytest.mark.stack


def test_missing_program_prevents_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(tmp_path / "s", Tools.load(), StackOptions(extras=EXTRAS))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ToolError) as caught:
        stack.up()

    assert str(caught.value) == (
        "proxysql is not installed. "
        "Put it on the PATH, or start the stack without proxysql."
    )
    assert not stack.folder.exists()


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose Keystone connects to ProxySQL."""
    if shutil.which("proxysql") is None:
        pytest.skip("not installed: proxysql")
    folder: Path = tmp_path_factory.mktemp("proxied")
    options = StackOptions(extras=EXTRAS)
    with Stack(folder, Tools.load(), options, initial_data=SAMPLE_CLOUD) as started:
        yield started


def issue(stack: Stack) -> None:
    """Issue a token."""
    admin = stack.admin()
    domain = {"id": admin.user_domain_id}
    user = {"name": admin.username, "domain": domain, "password": admin.password}
    identity = {"methods": ["password"], "password": {"user": user}}
    url = f"{admin.auth_url}/auth/tokens"
    answer = requests.post(url, json={"auth": {"identity": identity}}, timeout=30)
    assert answer.status_code == requests.codes.created


def metrics(stack: Stack) -> dict[str, float]:
    """Return the exporter's values by series."""
    text = requests.get(f"{stack.url('exporters')}/metrics", timeout=30).text
    found = re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", text, re.MULTILINE)
    return {series: float(value) for series, value in found}


def test_proxysql_is_healthy_and_listens_on_loopback(proxied: Stack) -> None:
    statuses = {one.service: one for one in proxied.status()}
    proxy = psutil.Process(statuses["proxysql"].pid)
    listening = [c for c in proxy.net_connections("inet") if c.status == "LISTEN"]

    assert list(statuses) == [service.name for service in select_services(EXTRAS)]
    assert all(one.healthy for one in statuses.values())
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}
    assert StackRecord.load(proxied.folder).options.extras == EXTRAS


def test_statements_pass_proxysql_and_are_counted(proxied: Stack) -> None:
    issue(proxied)
    before = metrics_after(proxied, {})
    issue(proxied)
    after = metrics_after(proxied, before)

    assert after['keylag_exporter_source_success{source="proxysql"}'] == 1
    assert after[CALLS] > before[CALLS] > 0
    assert prometheus_has(proxied, f"{CALLS} >= {after[CALLS]}")
    # ProxySQL's threads publish these counters with a delay.
    assert prometheus_has(proxied, f"{SELECTS} > 0")


def metrics_after(stack: Stack, before: dict[str, float]) -> dict[str, float]:
    """Wait until the exporter has read new statistics; return the metrics."""
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    while (found := metrics(stack)).get(CALLS, 0) <= before.get(CALLS, 0):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


def prometheus_has(stack: Stack, query: str) -> bool:
    """Return whether a query finds a series before the timeout."""
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    url = f"{stack.url('prometheus')}/api/v1/query"
    while time.monotonic() < deadline:
        answer = requests.get(url, params={"query": query}, timeout=10).json()
        if answer["data"]["result"]:
            return True
        time.sleep(0.5)
    return False


def test_accounts_have_minimal_privileges(proxied: Stack) -> None:
    secrets = load_secrets(proxied.data)

    def ask(port: str, user: str, password: str, query: str) -> object:
        with (
            pymysql.connect(
                host="127.0.0.1",
                port=proxied.port(port),
                user=user,
                password=password,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query)
            return cursor.fetchall()

    reader = ("proxysql-admin", "stats", secrets.exporters)
    monitor = ("mariadb", "proxysql", secrets.proxysql)
    assert ask(*reader, "SELECT COUNT(*) FROM stats_mysql_query_digest")
    with pytest.raises(pymysql.MySQLError):
        ask(*reader, "SELECT password FROM main.mysql_users")
    assert ask(*monitor, "SELECT 1")
    with pytest.raises(pymysql.MySQLError, match="denied"):
        ask(*monitor, "SELECT * FROM keystone.user")


def test_monitor_account_can_connect(proxied: Stack) -> None:
    log = proxied.log("proxysql").read_text("utf-8", "replace")

    assert "Access denied" not in log


def test_command_lines_have_no_passwords(proxied: Stack) -> None:
    config = proxied.folder / "proxysql" / "proxysql.cnf"
    words = " ".join(
        " ".join(one.process.cmdline())
        for one in processes.find_processes(stack=proxied.folder)
    )

    secrets = load_secrets(proxied.data)
    assert config.stat().st_mode & 0o077 == 0
    assert secrets.proxysql in config.read_text()
    assert str(config) in words
    assert not any(secret in words for secret in vars(secrets).values())


def test_proxysql_stops_when_it_is_no_longer_selected(proxied: Stack) -> None:
    with Stack(
        proxied.folder, proxied.tools, StackOptions(), initial_data=SAMPLE_CLOUD
    ) as usual:
        running = {one.service for one in processes.find_processes(stack=usual.folder)}
        issue(usual)

        assert "proxysql" not in running
        assert usual.is_up()
