"""Events are parsed as by pt-query-digest, except for implausible numbers."""

import json
import random
import subprocess

import pytest
from exporter_helpers import EVENT, HEAD, SET, TIMES, aggregate_log

from keylag_exporters.slow_log import read_once
from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.startup_banner import strip_startup_banner
from keylag_exporters.slow_log.statement_classes import MAX_ROWS, MAX_SECONDS

HEADER = HEAD + TIMES + b"\n"
MARIADB = (
    HEAD
    + b"# Thread_id: 5  Schema: k  QC_hit: No\n"
    + TIMES
    + b"\n# Rows_affected: 0  Bytes_sent: 5\n"
)
COLUMNS = ("Query_time", "Lock_time", "Rows_sent", "Rows_examined")

STATEMENTS = [
    *(b"SELECT 1", b"SELECT 1;", b"SELECT 1;;", b"SELECT 1 ; ", b";", b" SELECT 1"),
    *(b"SELECT 1;\nSELECT 2", b"SELECT 1;\n", b"SELECT 1\n;\n", b"SELECT 1;\n\n"),
    *(b"", b"0", b"\nSELECT 1", b"BEGIN", b"SET NAMES utf8", b"DELIMITER //"),
    *(b"USE k", b"USE `k`;", b"use a;\nSELECT 1", b"SET timestamp=5;\nSELECT 9"),
    *(b"# hello\nSELECT 1", b"# hi", b"#\nSELECT 1;", b"-- x\nSELECT 1"),
    *(b"/* c */ SELECT 1;", b"SELECT 'x;\n'", b"SELECT 'it\\'s'", b'SELECT "a"'),
    *(b"administrator command: Quit", b"administrators", b"Administrator x"),
]
COMMANDS = [b"Quit", b"Init DB", b"Ping", b"Close stmt", b"Binlog Dump"]


def event(draw):
    """Return a random event that pt-query-digest parses."""
    time = draw.choice([b"", b"", b"# Time: 261121  5:54:07\n"])
    about = draw.choice(
        [HEADER, MARIADB, HEADER + b"# Full_scan: Yes  Full_join: No\n"]
    )
    use = draw.choice([b"", b"", b"use k;\n"])
    set_ = draw.choice([SET, SET, b"SET last_insert_id=3,timestamp=1795240444;\n"])
    command = b"# administrator command: " + draw.choice(COMMANDS)
    if draw.random() < 0.1:
        return time + about + use + command + b";\n"
    text = command if draw.random() < 0.4 else draw.choice(STATEMENTS)
    return time + about + use + set_ + text + b";\n"


def reference_counters(program, path):
    """Return {id: (count, sums of the columns)} of pt-query-digest."""
    run = subprocess.run(
        [program, "--no-version-check", "--limit=100%", "--output=json", str(path)],
        capture_output=True,
        check=True,
    )
    classes = json.loads(run.stdout, strict=False)["classes"]
    return {
        "0x" + one["checksum"]: (
            one["query_count"],
            *(float(one["metrics"][name]["sum"]) for name in COLUMNS),
        )
        for one in classes
    }


def counters_by_id(aggregator):
    return {
        one["id"]: (
            one["count"],
            one["query_time_seconds_sum"],
            one["lock_time_seconds_sum"],
            one["rows_sent"],
            one["rows_examined"],
        )
        for one in read_once.merge_by_id(aggregator)
    }


@pytest.mark.parametrize("seed", range(3))
def test_random_event_forms_match_pt_query_digest(seed, pt_query_digest, tmp_path):
    draw = random.Random(seed)
    path = tmp_path / "slow.log"
    path.write_bytes(b"".join(event(draw) for _ in range(1500)))

    assert counters_by_id(aggregate_log(path.read_bytes())) == reference_counters(
        pt_query_digest, path
    )


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("place", ["first", "between", "last"])
def test_each_statement_form_matches_pt_query_digest(
    statement, place, pt_query_digest, tmp_path
):
    path = tmp_path / "slow.log"
    one = HEADER + b"use k;\n" + SET + statement + b";\n"
    other = EVENT.replace(b"SELECT 1", b"SELECT x FROM y")
    parts = {
        "first": (one, other),
        "between": (other, one, other),
        "last": (other, one),
    }
    path.write_bytes(b"".join(parts[place]))
    data = path.read_bytes()

    assert counters_by_id(aggregate_log(data)) == reference_counters(
        pt_query_digest, path
    )
    assert counters_by_id(aggregate_log(data, size=1)) == counters_by_id(
        aggregate_log(data)
    )


@pytest.mark.parametrize("seed", range(20))
def test_counters_are_independent_of_chunk_boundaries(seed):
    draw = random.Random(seed)
    data = b"".join(event(draw) for _ in range(20))
    whole, cut = aggregate_log(data), aggregate_log(data, draw.randrange(1, 90))

    assert (counters_by_id(cut), cut.skipped_events) == (
        counters_by_id(whole),
        whole.skipped_events,
    )


def test_log_ending_with_an_empty_line_matches_pt_query_digest(
    pt_query_digest, tmp_path
):
    path = tmp_path / "slow.log"
    path.write_bytes(EVENT * 2 + b"\n")

    assert counters_by_id(aggregate_log(path.read_bytes())) == reference_counters(
        pt_query_digest, path
    )


def counts(data):
    aggregator = aggregate_log(data)
    return {
        one["fingerprint"]: one["count"] for one in read_once.merge_by_id(aggregator)
    }


@pytest.mark.parametrize(
    ("statement", "fingerprint"),
    [
        (b"use keystone", "use ?"),
        (b"use `keystone`", "use ?"),
        (b"SET timestamp=5", "set timestamp=?"),
        (b"SET insert_id=5", "set insert_id=?"),
    ],
)
def test_use_and_set_statements_are_events(statement, fingerprint):
    """pt-query-digest takes the next event's header for the statement instead."""
    one = EVENT.replace(b"SELECT 1", statement)

    assert counts(EVENT + one + EVENT * 2) == {"select ?": 3, fingerprint: 1}
    assert counts(EVENT + one) == {"select ?": 1, fingerprint: 1}
    assert counts(EVENT + one * 3 + EVENT) == {"select ?": 2, fingerprint: 3}


def test_event_without_statement_has_an_empty_fingerprint():
    """The `use` line of its header is not taken for the statement."""
    assert counts(HEADER + b"use k;\n" + SET + EVENT) == {"": 1, "select ?": 1}


def test_header_at_the_end_of_a_log_is_skipped(pt_query_digest, tmp_path):
    path = tmp_path / "slow.log"
    path.write_bytes(EVENT * 2 + HEADER + SET)
    aggregator = aggregate_log(path.read_bytes())

    assert counters_by_id(aggregator) == reference_counters(pt_query_digest, path)
    assert aggregator.skipped_events == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("query_time", b"18446744073709.550781"),
        ("query_time", b"-0.000001"),
        ("query_time", b"4294967.296000"),
        ("lock_time", b"18446744073709.55"),
        ("lock_time", b"-1"),
        ("rows_sent", b"18446744073709551615"),
        ("rows_examined", b"18446744073709551552"),
        ("rows_examined", b"-3"),
    ],
)
@pytest.mark.parametrize("statement", [b"SELECT 1", b'SELECT "a"'])
def test_event_with_an_implausible_number_is_excluded_and_counted(
    column, value, statement
):
    usual = {"query_time": b"0.5", "lock_time": b"0.25",
             "rows_sent": b"2", "rows_examined": b"3"}  # fmt: skip
    name = column.capitalize().encode() + b": "
    implausible = EVENT.replace(name + usual[column], name + value)
    implausible = implausible.replace(b"SELECT 1", statement)
    aggregator = aggregate_log(EVENT * 3 + implausible + EVENT * 2 + implausible)

    assert implausible != EVENT
    assert aggregator.implausible_events == dict.fromkeys(usual, 0) | {column: 2}
    total = aggregator.total
    assert (total.count, total.query_time_us, total.lock_time_us) == (
        5, 2_500_000, 1_250_000,
    )  # fmt: skip
    assert (total.rows_sent, total.rows_examined, aggregator.skipped_events) == (
        10,
        15,
        0,
    )
    assert max(total.buckets) == 5


def test_the_largest_plausible_numbers_are_counted():
    data = (
        EVENT.replace(b"0.5", b"%d.0" % MAX_SECONDS)
        .replace(b"0.25", b"%d" % MAX_SECONDS)
        .replace(b"sent: 2", b"sent: %d" % MAX_ROWS)
        .replace(b"examined: 3", b"examined: %d" % MAX_ROWS)
    )
    total = aggregate_log(data).total

    assert (total.count, total.query_time_us) == (1, MAX_SECONDS * 10**6)
    assert (total.lock_time_us, total.rows_sent) == (MAX_SECONDS * 10**6, MAX_ROWS)
    assert total.rows_examined == MAX_ROWS


def test_implausible_events_survive_a_restart():
    data = EVENT.replace(b"0.5", b"18446744073709.550781")
    saved = json.loads(json.dumps(aggregate_log(data).as_dict()))
    aggregator = StatementAggregator()
    aggregator.restore(saved)
    assert aggregator.implausible_events["query_time"] == 1
    del saved["implausible"]  # as an older version saved it

    aggregator = StatementAggregator()
    aggregator.restore(saved)

    assert aggregator.implausible_events["query_time"] == 0


@pytest.mark.parametrize(
    "text",
    [
        b"/*" + HEAD + TIMES + b"\n" + (b"\n" + HEAD + TIMES) * 20_000 + b"*/",
        b"#" + b"a" * 2_000_000,
        b"Amysqld, Version" * 50_000 + b" started with:" * 50_000,
        b"Tcp port: " + b"1" * 2_000_000,
        b"use " + b"a" * 2_000_000,
        b"\n# Query_time:" * 100_000,
    ],
    ids=["headers", "hash", "start", "port", "use", "times"],
)
@pytest.mark.timeout(60)
def test_hostile_log_is_parsed_in_linear_time(text):
    """A pattern that backtracks takes minutes or hours for each of these."""
    data = EVENT + EVENT.replace(b"SELECT 1", text) + EVENT

    assert counts(data)["select ?"] >= 2


def test_startup_banner_is_stripped():
    start = (
        b"/usr/sbin/mysqld, Version: 8.0.30 (Debian). started with:\n"
        b"Tcp port: 3306  Unix socket: /run/mysqld.sock\n"
        b"Time                 Id Command    Argument\n"
    )
    rest = b"Amysqld, Version: 1\nTime flies\nTcp port: none\n"

    assert strip_startup_banner(b"a\n" + start + rest + start + b"b") == (
        b"a\n" + rest + b"b"
    )
    assert strip_startup_banner(rest) is rest
    assert strip_startup_banner(b"Tcp port: 1") == b"Tcp port: 1"
