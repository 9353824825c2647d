"""Counts of whole logs equal those of pt-query-digest."""

import gzip
import json
import random
import subprocess
import sys
import tracemalloc

import pymysql
import pytest
from click.testing import CliRunner
from exporter_helpers import (
    EVENT,
    HEAD,
    LOGS,
    MARIADB_START,
    MYSQL_START,
    SET,
    TIMES,
    aggregate_log,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fingerprint import log_of, reference_counts, statements

from keylag_exporters.cli import main
from keylag_exporters.slow_log import read_once
from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.event_splitter import EventSplitter
from keylag_exporters.slow_log.sql_comment import Tag


def classes_of(aggregator):
    return {
        one["id"]: (one["count"], f"{one['query_time_seconds_sum']:.6f}")
        for one in read_once.merge_by_id(aggregator)
    }


def fingerprints(data):
    aggregator = aggregate_log(data)
    counts = {
        one["fingerprint"]: one["count"] for one in read_once.merge_by_id(aggregator)
    }
    return counts, aggregator.skipped_events


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_recorded_logs_match_pt_query_digest(log, pt_query_digest):
    assert classes_of(aggregate_log(log.read_bytes())) == reference_counts(
        pt_query_digest, log
    )


@pytest.mark.parametrize("seed", range(2))
def test_random_mixed_log_matches_pt_query_digest(seed, pt_query_digest, tmp_path):
    real = LOGS[0].read_bytes().split(b"\n# User@Host")
    draw = random.Random(seed)
    nasty = log_of(statements(seed + 100, 400)).split(b"\n# User@Host")
    mixed = [draw.choice([real, nasty])[draw.randrange(1, 399)] for _ in range(2000)]
    path = tmp_path / "mixed.log"
    path.write_bytes(b"".join(b"# User@Host" + one + b"\n" for one in mixed))

    assert classes_of(aggregate_log(path.read_bytes())) == reference_counts(
        pt_query_digest, path
    )


@given(st.integers(1, 3000))
@settings(max_examples=25, deadline=None)
def test_counts_are_independent_of_chunk_size(size):
    data = LOGS[0].read_bytes()[:40_000]

    assert classes_of(aggregate_log(data, size)) == classes_of(aggregate_log(data))


@given(st.binary(max_size=300), st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_garbage_costs_at_most_two_events(noise, at):
    noise = noise.replace(b"Query_time", b"")
    events = [EVENT] * 20
    events.insert(at, noise + b";\n")

    counted = aggregate_log(b"".join(events)).event_count

    assert 18 <= counted <= 20


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (EVENT * 3, {"select ?": 3}),
        (EVENT.replace(b"\n", b"\r\n") * 3, {"select ?": 3}),
        (b"# Time: 261121  5:54:07\n" + EVENT, {"select ?": 1}),
        (b"# Time: 2026-11-21T05:54:07.123456Z\n" + EVENT, {"select ?": 1}),
        (EVENT.replace(SET, b"use keystone;\n" + SET), {"select ?": 1}),
        (EVENT.replace(SET, b"SET last_insert_id=1,insert_id=2;\n"), {"select ?": 1}),
        (HEAD + TIMES + b"\n" + SET + b"use keystone;\n" + EVENT,
         {"use ?": 1, "select ?": 1}),
        (HEAD + TIMES + b"\n" + SET + b"# administrator command: Quit;\n" + EVENT,
         {"administrator command: Quit": 1, "select ?": 1}),
        (MARIADB_START + EVENT, {"select ?": 1}),
        (EVENT + MYSQL_START + EVENT, {"select ?": 2}),
        (EVENT + MARIADB_START + EVENT + MARIADB_START, {"select ?": 2}),
        (EVENT.replace(b"SELECT 1", b"SELECT 1;\nSELECT 2"), {"select ?; select ?": 1}),
        (EVENT + EVENT[:-3], {"select ?": 1, "select ": 1}),
        (EVENT.replace(b"SELECT 1", b"SELECT '" + b"x" * (3 << 20) + b"'"),
         {"select ?": 1}),
        (EVENT.replace(b"# Query", b"# Schema: k  Last_errno: 0  Killed: 0\n# Query"),
         {"select ?": 1}),
        (EVENT.replace(b"Rows_sent", b"Rows_sent").replace(b"  Rows_s", b" Rows_s"),
         {"select ?": 1}),
    ],
)  # fmt: skip
def test_every_event_form_is_parsed(log, expected):
    assert fingerprints(log) == (expected, 0)


@pytest.mark.parametrize(
    "garbage", [b"# garbage\nand more;\n", b"# User@Host: x;\n", HEAD + SET + b"x;\n"]
)
def test_invalid_events_are_skipped_and_counted(garbage):
    assert fingerprints(EVENT + garbage + EVENT) == ({"select ?": 2}, 1)


@pytest.mark.parametrize(
    ("header", "flags"),
    [
        (TIMES + b"\n# Rows_affected: 0  Bytes_sent: 1\n# Full_scan: Yes"
         b"  Full_join: Yes"
         b"  Tmp_table: Yes  Tmp_table_on_disk: No", (0, 1, 1, 1, 0)),
        (b"# Schema: k  Last_errno: 1062  Killed: 0\n" + TIMES + b"  Rows_affected: 0\n"
         b"# QC_Hit: No  Full_scan: No  Full_join: No  Tmp_table: Yes"
         b"  Tmp_table_on_disk: Yes", (1, 0, 0, 1, 1)),
        (TIMES + b" Thread_id: 8 Errno: 1062 Killed: 0 Created_tmp_disk_tables: 0"
         b" Created_tmp_tables: 2 Start: x End: y", (1, 0, 0, 1, 0)),
        (TIMES + b" Thread_id: 8 Errno: 0 Killed: 0 Created_tmp_disk_tables: 0"
         b" Created_tmp_tables: 0 Start: x End: y", (0, 0, 0, 0, 0)),
    ],
    ids=["mariadb", "percona", "mysql8", "mysql8-none"],
)  # fmt: skip
def test_flags_of_mariadb_percona_and_mysql_are_counted(header, flags):
    (one,) = read_once.merge_by_id(
        aggregate_log(HEAD + header + b"\n" + SET + b"SELECT 1;\n")
    )
    names = ("errors", "full_scans", "full_joins", "temporary_tables",
             "disk_temporary_tables")  # fmt: skip

    assert tuple(one[name] for name in names) == flags
    assert (one["lock_time_seconds_sum"], one["rows_sent"], one["rows_examined"]) == (
        0.25, 2, 3,
    )  # fmt: skip


COMMENT = b"/*keylag:route='POST /v3/auth/tokens',operation='validate'*/"


@pytest.mark.parametrize(
    "statement",
    [
        COMMENT + b" SELECT 'x'",
        b"SELECT 'x'" + COMMENT,
        b"/*a*/" + COMMENT + b"SELECT 'it\\'s'",
    ],
)
def test_keylag_comment_becomes_the_tag_and_leaves_the_fingerprint(statement):
    aggregator = aggregate_log(EVENT.replace(b"SELECT 1", statement) * 2)
    ((key, one),) = aggregator.classes.items()

    assert key[1] == Tag("POST /v3/auth/tokens", "validate")
    assert (one.fingerprint, one.aggregate.count) == (b"select ?", 2)


def test_log_with_keylag_comments_matches_pt_query_digest(pt_query_digest, tmp_path):
    data = LOGS[0].read_bytes().replace(b"\nSELECT", b"\n" + COMMENT + b" SELECT")
    path = tmp_path / "tagged.log"
    path.write_bytes(data)

    assert classes_of(aggregate_log(data)) == reference_counts(pt_query_digest, path)


def test_number_of_classes_is_bounded_and_the_total_complete():
    words = [f"SELECT a FROM {'x' * n}".encode() for n in range(1, 200)]
    aggregator = aggregate_log(log_of(words), size=1000, max_classes=50)

    assert len(aggregator.classes) <= 50
    assert aggregator.forgotten_classes == 199 - len(aggregator.classes)
    assert aggregator.total.count == 199


@pytest.mark.slow
def test_memory_is_independent_of_log_size():
    data = LOGS[0].read_bytes()
    peaks = []
    for times in (5, 50):
        aggregator = StatementAggregator()
        splitter = EventSplitter(aggregator)
        tracemalloc.start()
        for _ in range(times):
            splitter.write(data)
        aggregator.flush()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.5 * peaks[0]


def test_once_reads_files_gzip_and_standard_input(tmp_path):
    raw = LOGS[0].read_bytes()
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(raw))
    command = [sys.executable, "-m", "keylag_exporters", "slow-log", "--once"]
    outputs = [
        subprocess.run(
            [*command, *words], input=given_, capture_output=True, check=True
        ).stdout
        for words, given_ in (
            ([str(LOGS[0]), "--output=json"], None),
            ([str(packed), "--output=json"], None),
            (["-", "--output=json"], raw),
            (["-", "--output=json"], gzip.compress(raw)),
        )
    ]

    assert len(set(outputs)) == 1
    content = json.loads(outputs[0])
    assert (content["events"], content["skipped"]) == (1019, 0)
    assert {"id", "fingerprint", "count", "query_time_seconds_sum"} <= set(
        content["classes"][0]
    )


NO_LOG = {
    "text": b"# A heading\n\nSome words; and more.\n",
    "binary": bytes(range(256)) * 100,
    "SQL": b"SELECT 1;\n" * 1000,
}


@pytest.mark.parametrize("output", ["table", "json", "log"])
@pytest.mark.parametrize("more", [[], ["--since=0"]], ids=["whole", "window"])
@pytest.mark.parametrize("kind", NO_LOG)
def test_once_rejects_files_without_events(tmp_path, kind, more, output):
    path = tmp_path / "other"
    path.write_bytes(NO_LOG[kind])
    words = [f"--once={path}", f"--output={output}", *more]

    done = CliRunner().invoke(main, ["slow-log", *words])

    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {path} is not a slow log: ")


@pytest.mark.parametrize("content", [b"", MARIADB_START, MYSQL_START])
def test_once_accepts_empty_logs_and_startup_banners(tmp_path, content):
    path = tmp_path / "slow.log"
    path.write_bytes(content)

    done = CliRunner().invoke(main, ["slow-log", f"--once={path}"])

    assert (done.exit_code, done.output.splitlines()[1:]) == (
        0,
        ["0 events, 0 skipped"],
    )


@pytest.mark.parametrize("before", [b"", b"-- ", b"-" * (64 << 10)])
def test_once_skips_a_partial_first_event(tmp_path, before):
    path = tmp_path / "slow.log"
    path.write_bytes(before + b"half a statement;\n" + EVENT * 2)

    done = CliRunner().invoke(main, ["slow-log", f"--once={path}"])

    assert done.output.splitlines()[-1] == "2 events, 1 skipped"


def test_time_window_selects_events_by_timestamp(tmp_path):
    first = EVENT.replace(b"1795240444", b"1795240400")
    path = tmp_path / "slow.log"
    path.write_bytes(first * 2 + EVENT * 3)

    with (tmp_path / "out").open("w") as out:
        read_once.print_report(
            str(path), "log", read_once.TimeWindow.parse("1795240401", None), out
        )

    assert (tmp_path / "out").read_bytes() == EVENT * 3
    assert read_once.TimeWindow.parse("2026-11-21T05:54:04", None).since == 1795240444


PING = EVENT.replace(b"SELECT 1;", b"# administrator command: Ping;")


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_time_window_keeps_commands_with_their_header(tmp_path, ends):
    """A separator is between the header of a command and the command."""
    late = PING + EVENT
    early = late.replace(b"1795240444", b"1795240400")
    path = tmp_path / "slow.log"
    path.write_bytes((early + late).replace(b"\n", ends))

    with (tmp_path / "out").open("w") as out:
        read_once.print_report(
            str(path), "log", read_once.TimeWindow.parse("1795240401", None), out
        )

    assert (tmp_path / "out").read_bytes() == late


def test_damaged_archive_is_an_error_with_its_reason(tmp_path):
    whole = gzip.compress(EVENT * 1000)
    path = tmp_path / "slow.log.gz"
    path.write_bytes(whole[:20] + b"damaged" + whole[27:])

    done = CliRunner().invoke(main, ["slow-log", f"--once={path}"])

    assert done.exit_code == 1
    assert done.output.startswith("Error: ")


TALKATIVE = "query_plan,innodb,explain"


@pytest.mark.stack
def test_verbose_mariadb_log_matches_pt_query_digest(
    mariadb, pt_query_digest, tmp_path
):
    """Extended header lines, commands without SQL, errors, JSON and long text."""
    mariadb.execute(
        "DROP DATABASE IF EXISTS talk",
        "CREATE DATABASE talk",
        "CREATE TABLE talk.user (id INT PRIMARY KEY, extra TEXT, KEY (extra(10)))",
    )
    start = mariadb.slow_log.stat().st_size
    with mariadb.connect(database="talk") as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET SESSION log_slow_verbosity = '{TALKATIVE}'")
        for n in range(30):
            cursor.execute(
                "INSERT INTO user VALUES (%s, %s), (%s, %s)",
                (2 * n, '{"a": "it\'s (b)"}', 2 * n + 1, "-- # /* x */ \\" * n),
            )
            cursor.execute("SELECT * FROM user WHERE id IN (%s, 2)", (n,))
            cursor.execute("SELECT COUNT(*) FROM user a, user b GROUP BY a.extra")
            cursor.execute("SELECT 'x' # line\n FROM user -- it's\n LIMIT 1, 2")
            with pytest.raises(pymysql.IntegrityError):
                cursor.execute("INSERT INTO user VALUES (0, 'again')")
            connection.ping()
            connection.select_db("talk")
        cursor.execute("SELECT %s", ("y" * 2_000_000,))
    data = mariadb.slow_log.read_bytes()[start:]
    path = tmp_path / "talkative.log"
    path.write_bytes(data)
    aggregator = aggregate_log(data)

    assert classes_of(aggregator) == reference_counts(pt_query_digest, path)
    assert aggregator.skipped_events == 0
    assert aggregator.total.count >= 30 * 5
    assert aggregator.total.temporary_tables >= 30
