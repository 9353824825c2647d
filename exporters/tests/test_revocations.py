"""A real revocation table with the schema of Keystone 30."""

import re
import ssl
from itertools import product
from types import SimpleNamespace

import pymysql
import pytest

from keylag_exporters.revocations import (
    EVENT_KIND_SQL,
    EVENT_KINDS,
    INDEXES,
    SOURCE_TYPE,
)
from keylag_otel.revocation import kind_of

COLUMNS = """id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, domain_id VARCHAR(64),
project_id VARCHAR(64), user_id VARCHAR(64), role_id VARCHAR(64), trust_id VARCHAR(64),
consumer_id VARCHAR(64), access_token_id VARCHAR(64), issued_before DATETIME NOT NULL,
expires_at DATETIME, revoked_at DATETIME NOT NULL, audit_id VARCHAR(32),
audit_chain_id VARCHAR(32)"""
KEYS = [columns for columns, _ in INDEXES]
# age in seconds, then the columns that are set
EVENTS = [
    (10, {"audit_id": "a"}),
    (10, {"audit_chain_id": "c"}),
    (1000, {"audit_chain_id": "c"}),
    (2000, {"audit_chain_id": "c"}),
    (20, {"user_id": "u"}),
    (20, {"user_id": "u", "project_id": "p"}),
    (20, {"project_id": "p"}),
    (20, {"domain_id": "d"}),
    (30, {"trust_id": "t", "user_id": "u"}),
    (30, {"role_id": "r"}),
    (30, {"access_token_id": "x", "consumer_id": "y"}),
    (30, {"consumer_id": "y"}),
    (6000, {"audit_id": "old"}),
    (7000, {"user_id": "old"}),
]


def create(mariadb, keys=KEYS):
    indexes = "".join(f", KEY k{n} ({key})" for n, key in enumerate(keys))
    mariadb.execute(
        "DROP DATABASE IF EXISTS keystone",
        "CREATE DATABASE keystone",
        f"CREATE TABLE keystone.revocation_event ({COLUMNS}{indexes})",
        "DROP USER IF EXISTS keylag@'127.0.0.1'",
        # as in docs/how-to/revocations-exporter.md
        "CREATE USER keylag@'127.0.0.1' IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 2",
        "GRANT SELECT ON keystone.revocation_event TO keylag@'127.0.0.1'",
    )


def insert(mariadb, events):
    for ago, names in events:
        moment = f"UTC_TIMESTAMP() - INTERVAL {ago} SECOND"
        values = "".join(f", '{value}'" for value in names.values())
        columns = "".join(f", {name}" for name in names)
        mariadb.execute(
            "INSERT INTO keystone.revocation_event"
            f" (issued_before, revoked_at{columns})"
            f" VALUES ({moment}, {moment}{values})"
        )


def fill(mariadb, count):
    """Insert events of three kinds, spread over three hours."""
    mariadb.execute(
        "INSERT INTO keystone.revocation_event"
        " (issued_before, revoked_at, user_id, audit_id, audit_chain_id)"
        " SELECT UTC_TIMESTAMP() - INTERVAL seq % 10800 SECOND,"
        " UTC_TIMESTAMP() - INTERVAL seq % 10800 SECOND,"
        " IF(seq % 3 = 0, MD5(seq), NULL),"
        " IF(seq % 3 = 1, MD5(seq), NULL), IF(seq % 3 = 2, MD5(seq), NULL)"
        f" FROM seq_1_to_{count}",
        database="keystone",
    )


@pytest.fixture
def create_source(mariadb, settings, monkeypatch):
    monkeypatch.setenv("KEYLAG_REVOCATIONS_PASSWORD", "p")

    def open_(**more):
        return SOURCE_TYPE.create(
            settings(SOURCE_TYPE, {"port": mariadb.port, "timeout": 30, **more})
        )

    return open_


def value(found, name, **labels):
    return found[f"keylag_revocations_{name}", tuple(sorted(labels.items()))]


@pytest.mark.stack
def test_events_are_counted_by_kind_and_age(mariadb, create_source, samples):
    create(mariadb)
    insert(mariadb, EVENTS)
    found = samples(create_source().collect())
    kinds = {dict(labels)["kind"]: v for (n, labels), v in found.items() if "live" in n}

    assert kinds == {
        "audit_chain": 3, "audit_id": 1, "trust": 1, "access_token": 1, "consumer": 1,
        "role": 1, "user": 1, "project": 2, "domain": 1, "other": 0,
    }  # fmt: skip
    assert value(found, "expired_events") == 2
    assert value(found, "oldest_event_age_seconds") == pytest.approx(7000, abs=60)


@pytest.mark.stack
def test_sql_and_keylag_otel_assign_the_same_event_kind(mariadb):
    """Compared for all combinations of set columns."""
    columns = [column for _, column in EVENT_KINDS]
    events = list(product((None, "x"), repeat=len(columns)))
    rows = " UNION ALL ".join(
        "SELECT "
        + ", ".join(
            f"{'NULL' if value is None else repr(value)} AS {column}"
            for column, value in zip(columns, event, strict=True)
        )
        for event in events
    )
    found = mariadb.execute(f"SELECT {EVENT_KIND_SQL} FROM ({rows}) AS events")
    expected = [
        kind_of(SimpleNamespace(**dict(zip(columns, event, strict=True))))
        for event in events
    ]

    assert len(found) == 2 ** len(columns)
    assert [kind for (kind,) in found] == expected


@pytest.mark.stack
def test_prediction_counts_events_that_no_check_excludes(
    mariadb, create_source, samples
):
    create(mariadb)
    insert(mariadb, EVENTS)
    found = samples(create_source(event_seconds=0.001).collect())

    # events by chain, domain, role, access token and consumer apply to every token
    assert value(found, "events_per_check", token_age="whole") == 7
    assert value(found, "events_per_check", token_age="half") == 6
    assert value(found, "predicted_check_seconds", token_age="whole") == pytest.approx(
        0.007
    )


@pytest.mark.stack
def test_missing_indexes_are_exported(mariadb, create_source, samples):
    create(mariadb, KEYS[:5])
    found = samples(create_source().collect())
    present = {
        dict(labels)["columns"]: v for (n, labels), v in found.items() if "index" in n
    }

    assert present == {key: float(key in KEYS[:5]) for key in KEYS}


@pytest.mark.stack
def test_empty_table_exports_no_oldest_event_age(mariadb, create_source, samples):
    create(mariadb)
    found = samples(create_source().collect())

    assert ("keylag_revocations_oldest_event_age_seconds", ()) not in found
    assert value(found, "expired_events") == 0


@pytest.mark.stack
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_read_examines_a_million_rows_a_few_times(mariadb, create_source, samples):
    create(mariadb, keys=[])
    fill(mariadb, 1_000_000)
    mariadb.execute(
        "ALTER TABLE revocation_event "
        + ", ".join(f"ADD KEY k{n} ({key})" for n, key in enumerate(KEYS)),
        database="keystone",
    )
    mariadb.slow_log.write_bytes(b"")
    found = samples(create_source(statement_seconds=60).collect())
    examined = re.findall(rb"Rows_examined: (\d+)", mariadb.slow_log.read_bytes())

    live = sum(v for (n, _), v in found.items() if n.endswith("_live_events"))
    # some hundred events expire in each second between the two counts
    total = live + value(found, "expired_events")
    assert total == pytest.approx(1_000_000, rel=0.01)
    assert 1_000_000 <= sum(map(int, examined)) < 4_000_000


@pytest.mark.stack
def test_ca_certificates_are_loaded_once(mariadb, create_source, monkeypatch):
    """Loading them takes longer than all statements of a read."""
    create(mariadb)
    loaded = []
    make = ssl.create_default_context
    monkeypatch.setattr(
        ssl, "create_default_context", lambda **more: loaded.append(1) or make(**more)
    )
    source = create_source()
    for _ in range(3):
        source.collect()

    assert len(loaded) == 1


@pytest.mark.stack
def test_long_statement_is_killed_by_the_server(mariadb, create_source):
    create(mariadb)
    mariadb.execute(
        "INSERT INTO keystone.revocation_event (issued_before, revoked_at)"
        " SELECT UTC_TIMESTAMP(), UTC_TIMESTAMP() FROM seq_1_to_100000",
        database="keystone",
    )

    with pytest.raises(pymysql.MySQLError, match="max_statement_time"):
        create_source(statement_seconds=0.001).collect()
