"""Tables recorded from ProxySQL 2.7.1, served over the MySQL protocol.

MariaDB serves them with all columns as text, as the admin port does. One test uses a
real ProxySQL if it is installed.
"""

import re
import shutil
import subprocess
import time

import pytest
from exporter_helpers import free_port, wait_until

from keylag_exporters.model import UnreachableError
from keylag_exporters.proxysql import SOURCE_TYPE

TABLES = (
    "query_digest",
    "global",
    "connection_pool",
    "commands_counters",
    "query_rules",
)
# The account of stats_credentials has this default schema.
USE_STATS_SCHEMA = "SET GLOBAL init_connect = 'USE stats'"


def parse_tables(text):
    """Return {table: (columns, rows)} of the sample file."""
    found = {}
    for section in text.split("\n=== ")[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        cells = [[c.strip() for c in line.strip("|").split(" | ")] for line in lines]
        if cells:
            found[section.split()[0]] = (cells[0], cells[1:])
    return found


def load_recorded_tables(mariadb, data):
    """Make a schema `stats` with the sample's rows, and an account to read it."""
    content = parse_tables("\n" + (data / "proxysql-2.7.1.txt").read_text())
    mariadb.execute("DROP DATABASE IF EXISTS stats", "CREATE DATABASE stats")
    for short in TABLES:
        name = f"stats_mysql_{short}"
        columns, rows = content[name]
        spec = ", ".join(f"`{column}` TEXT" for column in columns)
        mariadb.execute(f"CREATE TABLE stats.{name} ({spec})")
        with mariadb.connect() as connection, connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO stats.{name} VALUES ({marks})", rows)
    mariadb.execute("DROP USER IF EXISTS reader@'127.0.0.1'")
    mariadb.execute("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'p'")
    mariadb.execute("GRANT SELECT ON stats.* TO reader@'127.0.0.1'")
    mariadb.execute(USE_STATS_SCHEMA)


@pytest.fixture
def served(mariadb, data):
    """Settings to read the sample's tables."""
    load_recorded_tables(mariadb, data)
    yield {"port": mariadb.port, "user": "reader"}
    mariadb.execute("SET GLOBAL init_connect = ''")


@pytest.fixture
def source(served, settings, monkeypatch):
    monkeypatch.setenv("KEYLAG_PROXYSQL_PASSWORD", "p")
    return SOURCE_TYPE.create(settings(SOURCE_TYPE, served))


def digest(found, name, digest_, group):
    labels = {"digest": digest_, "hostgroup": group, "schema": "keystone"}
    labels["answered_by"] = "cache" if group == "cache" else "backend"
    return found[f"keylag_proxysql_digest_{name}_total", tuple(sorted(labels.items()))]


@pytest.mark.stack
def test_cache_answers_are_separate_from_backend_answers(source, samples):
    found = samples(source.collect())
    region = "0x30E8FDA9C30A6873"

    assert digest(found, "calls", region, "cache") == 7
    assert digest(found, "time_seconds", region, "cache") == 0
    assert digest(found, "calls", region, "10") == 1
    assert digest(found, "time_seconds", region, "10") == pytest.approx(273e-6)
    assert digest(found, "time_seconds", "0xA2E81530440E4377", "10") == pytest.approx(
        0.250270
    )


@pytest.mark.stack
def test_digest_has_a_readable_statement(source, samples):
    infos = [
        dict(labels)
        for name, labels in samples(source.collect())
        if name == "keylag_proxysql_digest_info"
    ]
    statements = {one["digest_text"]: one["statement"] for one in infos}

    found = statements["SELECT user.id,user.domain_id FROM user WHERE user.id = ?"]
    assert found == "SELECT … FROM user WHERE id = ?"
    assert statements["SELECT id FROM region WHERE id=?"].endswith("WHERE id = ?")
    assert len(infos) == len({one["digest"] for one in infos})


@pytest.mark.stack
def test_totals_rules_cache_and_pool_match_the_recorded_tables(source, samples):
    found = samples(source.collect())
    by_name = {name: value for (name, labels), value in found.items() if not labels}
    rule = {labels: v for (n, labels), v in found.items() if "rule_hits" in n}
    cached = found["keylag_proxysql_calls_total", (("hostgroup", "cache"),)]

    assert rule[("rule_id", "100"),] == 738
    assert by_name["keylag_proxysql_query_cache_lookups_total"] == 738
    assert by_name["keylag_proxysql_query_cache_hits_total"] == 724
    # The digest table lacks hits within write transactions.
    assert 0 < cached <= 724
    pool = (("hostgroup", "10"), ("server", "127.0.0.1:13306"), ("status", "ONLINE"))
    assert found["keylag_proxysql_pool_used_connections", pool] == 2
    assert (
        found["keylag_proxysql_pool_requests_total", (("outcome", "success"),)] == 1551
    )


@pytest.mark.stack
def test_command_durations_are_a_cumulative_histogram_in_seconds(source, samples):
    found = samples(source.collect())

    def bucket(upper):
        labels = (("command", "SELECT"), ("le", upper))
        return found["keylag_proxysql_command_duration_seconds_bucket", labels]

    assert [bucket(u) for u in ("0.0001", "0.0005", "5.0", "10.0", "+Inf")] == [
        1812, 2070, 2091, 2092, 2092,
    ]  # fmt: skip
    total = found[
        "keylag_proxysql_command_duration_seconds_sum", (("command", "SELECT"),)
    ]
    assert total == pytest.approx(6.619490)


@pytest.mark.stack
def test_reset_tables_are_never_read(served, source, mariadb):
    mariadb.slow_log.write_bytes(b"")
    source.collect()

    def read():
        log = mariadb.slow_log.read_text(errors="replace")
        return set(re.findall(r"FROM\s+([\w.]+)", log))

    # MariaDB logs a statement after its response.
    wait_until(lambda: {f"stats_mysql_{short}" for short in TABLES} <= read())
    assert not [table for table in read() if "_reset" in table]


@pytest.mark.stack
def test_wrong_password_raises_unreachable_error(served, settings, monkeypatch):
    monkeypatch.setenv("KEYLAG_PROXYSQL_PASSWORD", "wrong")
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, served))

    with pytest.raises(UnreachableError):
        source.collect()


def collect_once_reachable(source):
    deadline = time.monotonic() + 60
    while True:
        try:
            return source.collect()
        except UnreachableError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.stack
def test_proxysql_program_is_read(tmp_path, settings, samples, monkeypatch, mariadb):
    if not shutil.which("proxysql"):
        pytest.skip(
            "not installed: proxysql (its tables are served from samples instead)"
        )
    admin, front = free_port(), free_port()
    config = tmp_path / "proxysql.cnf"
    config.write_text(
        f'datadir="{tmp_path}"\n'
        'admin_variables={admin_credentials="admin:admin";'
        f'stats_credentials="stats:stats";mysql_ifaces="127.0.0.1:{admin}"}}\n'
        f'mysql_variables={{interfaces="127.0.0.1:{front}"}}\n'
    )
    process = subprocess.Popen(
        ["proxysql", "-f", "--initial", "--no-version-check", "-c", str(config)],
        stderr=subprocess.DEVNULL,
    )
    monkeypatch.setenv("KEYLAG_PROXYSQL_PASSWORD", "stats")
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"port": admin}))
    try:
        found = samples(collect_once_reachable(source))

        assert ("keylag_proxysql_query_cache_hits_total", ()) in found
    finally:
        process.kill()
        process.wait()
