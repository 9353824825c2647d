"""Readable statements: what they show, what they never show, and any input."""

import re

import pytest
from exporter_helpers import DATA, EVENT, LOGS, SET, aggregate_log
from hypothesis import given, settings
from hypothesis import strategies as st
from log_writer import LogWriter
from test_fingerprint import log_of, statements
from test_slow_log_source import ThreadlessSource, lines

from keylag_exporters.readable_sql import tree
from keylag_exporters.readable_sql.statement import (
    MAX_READ,
    MAX_READABLE,
    readable_statement,
)
from keylag_exporters.slow_log import aggregator, position
from keylag_exporters.slow_log.aggregator import StatementAggregator

EXAMPLES = [
    example.rstrip("\n").split("\n→ ")
    for example in (DATA / "readable-statements.txt").read_text().split("\n\n")
]


@pytest.mark.parametrize(("statement", "expected"), EXAMPLES)
def test_readable_form_of_known_statements(statement, expected):
    assert readable_statement(statement.encode()) == expected


@pytest.mark.parametrize("statement", [b"", b" ;", b"/* nothing */", b"-- a", b"\0"])
def test_readable_form_of_nothing_is_empty(statement):
    assert readable_statement(statement) == ""


@pytest.fixture(scope="module")
def recorded_classes():
    """Readable form and first statement of each class of the recorded logs."""
    found = {}
    for log in LOGS:
        for event in re.findall(
            rb"timestamp=\d+;\n(.*?);\n(?=#|\Z)", log.read_bytes(), re.DOTALL
        ):
            found[readable_statement(event)] = event.decode()
    return found


def test_recorded_statements_name_their_tables_and_filters(recorded_classes):
    assert len(recorded_classes) >= 20
    for readable, statement in recorded_classes.items():
        without_aliases = re.sub(r"anon_\d|\bAS \w+", "", statement)
        tables = re.findall(r"(?:FROM|JOIN) `?(\w+)", without_aliases)
        filters = re.findall(r"\.(\w+) (?:=|>=|IN) \(?'", statement)
        assert set(re.findall(r"\w+", readable)) >= {*tables, *filters}


def test_recorded_statements_lose_values_and_generated_aliases(recorded_classes):
    for readable, statement in recorded_classes.items():
        literals = {text for text in re.findall(r"'([^']*)'", statement) if text}
        assert not [text for text in literals if f"'{text}" in readable]
        assert not re.search(r"anon_|[0-9a-f]{32}|'|\b(?!local_user_1)\w+_\d", readable)
        assert len(readable) <= MAX_READABLE


SECRET = "5EC4E7"
LITERALS = [
    f"'{SECRET}'", f'"{SECRET}"', f"0x{SECRET}", f"X'{SECRET}'", f"x'{SECRET}'",
    f"b'{SECRET}'", f"N'{SECRET}'", f"_utf8mb4'{SECRET}'", f"_binary '{SECRET}'",
    f"_latin1 0x{SECRET}", f"'it''s {SECRET}'", f"'it\\'s {SECRET}'",
    f'"it\\"s {SECRET}"', f"'\\\\' '{SECRET}'", f"'\\\\\\'{SECRET}'",
    f"'\"{SECRET}'", f"\"'{SECRET}\"", f"'/*{SECRET}'", f"'*/{SECRET}/*'",
    f"'-- {SECRET}\n'", f"'#{SECRET}\n{SECRET}'", f"'`{SECRET}'", f"'a\n{SECRET}'",
    f"/* {SECRET} */ 1", f"1 -- {SECRET}\n", f"1 # {SECRET}\n", f"/*+ {SECRET} */ 1",
    f"/*!50000 '{SECRET}' */", f"/*!99999 'a*/{SECRET}'*/", f"/*M! '{SECRET}' */",
    f"1{SECRET}", f"-1.5{SECRET}", f"1e-1{SECRET}", f".1{SECRET}", f":p{SECRET}",
    "a" * MAX_READABLE + SECRET, f"`a {SECRET}`", f"'a' '{SECRET}'", f"('{SECRET}')",
]  # fmt: skip
UNFINISHED = [
    f"'{SECRET}", f'"{SECRET}', f"'a\\'{SECRET}", f"'a''{SECRET}", f"'{SECRET}\\",
    f"/* {SECRET}", f"-- {SECRET}", f"#{SECRET}", f"0x{SECRET}", f"_utf8mb4'{SECRET}",
    f"/*! '{SECRET}",
]  # fmt: skip
CONTEXTS = [
    "SELECT {} FROM t", "SELECT a, b FROM t WHERE a = {} AND b = 1",
    "SELECT a FROM t WHERE a IN (1, {})", "SELECT a FROM (SELECT {} AS a FROM t) AS s",
    "SELECT a FROM t JOIN u ON t.a = {} ORDER BY a LIMIT 1",
    "INSERT INTO t (a, b) VALUES (1, {})", "UPDATE t SET a = {}, b = 2 WHERE c = 3",
    "SET PASSWORD = PASSWORD({})", "CALL p({})", "{}", "nonsense ) ( {} ] [",
]  # fmt: skip


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_no_value_is_shown(context, literal):
    statement = context.format(literal)

    assert SECRET not in readable_statement(statement.encode())


@pytest.mark.parametrize("end", UNFINISHED)
@pytest.mark.parametrize("context", CONTEXTS)
def test_no_value_of_a_truncated_statement_is_shown(context, end):
    statement = context.partition("{}")[0] + end

    for length in range(len(statement) + 1):
        assert SECRET not in readable_statement(statement[:length].encode())


def test_value_at_the_end_of_what_is_read_is_not_shown():
    for before in range(MAX_READ - 20, MAX_READ + 1):
        statement = b"SELECT a FROM t WHERE".ljust(before) + b"'secret', 0x5EC4E7"
        readable = readable_statement(statement)
        assert readable.startswith("SELECT a FROM t")
        assert not re.search("sec|5E", readable)


def test_an_escaped_quote_hides_the_rest():
    """With NO_BACKSLASH_ESCAPES the first literal ends before the comma."""
    statement = rb"SELECT a FROM t WHERE b = 'a\', c = 'secret' AND d = 'it''s'"

    assert readable_statement(statement) == "SELECT a FROM t WHERE b = ?"


WORDS = st.sampled_from([part for text in EXAMPLES for part in text[0].split()])
HIDDEN = st.sampled_from(LITERALS)


@given(st.lists(WORDS | HIDDEN, max_size=40).map(" ".join))
@settings(max_examples=500, deadline=None)
def test_random_statements_show_no_value(statement):
    readable = readable_statement(statement.encode())

    assert SECRET not in readable
    assert len(readable) <= MAX_READABLE


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
@settings(max_examples=500, deadline=None)
def test_any_bytes_have_a_short_printable_form(data):
    readable = readable_statement(data)

    assert len(readable) <= MAX_READABLE
    assert all(one.isprintable() for one in readable)


@pytest.mark.parametrize("seed", range(3))
def test_strange_statements_are_read(seed):
    for statement in statements(seed, 500):
        assert len(readable_statement(statement)) <= MAX_READABLE


@pytest.mark.parametrize(
    "piece",
    [b"(", b")", b"'", b'"', b"`", b"/*", b"/*!", b"-", b"_", b"_a ", b"a,", b"a.",
     b"(select a from ", b"select a from t x join ", b"in (1,", b"values (?), ",
     b"insert into a ", b"union select a from (select b from t) x ", b"\xff", b"\0"],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_megabytes_of_hostile_text_are_read_in_bounded_time(piece):
    assert len(readable_statement(piece * 1_000_000)) <= MAX_READABLE


def test_deep_parentheses_end_the_statement():
    depth = tree.MAX_DEPTH

    assert readable_statement(b"(" * 5000 + b"a") == "(" * depth + "…" + ")" * depth


def count_calls(monkeypatch):
    """Return a list that grows with each statement that is made readable."""
    read = []

    def counted(statement):
        read.append(statement)
        return readable_statement(statement)

    monkeypatch.setattr(aggregator, "readable_statement", counted)
    return read


def test_each_class_is_made_readable_once(monkeypatch):
    read = count_calls(monkeypatch)
    texts = [b"SELECT a FROM t WHERE b = %d" % number for number in range(50)]
    escaped = [
        b"SELECT c FROM t WHERE d = 'it\\'s %d'" % number for number in range(50)
    ]
    found = aggregate_log(log_of(texts + escaped))

    assert [one.aggregate.count for one in found.classes.values()] == [50, 50]
    assert len(read) == 2


def test_restored_class_keeps_its_statement(monkeypatch):
    first = aggregate_log(EVENT)
    read = count_calls(monkeypatch)
    second = StatementAggregator()
    second.restore(first.as_dict())

    assert [one.readable for one in second.classes.values()] == ["SELECT ?"]
    assert read == []


def test_state_of_an_older_version_gets_its_statements(log, tmp_path):
    """Until the next event of a class, its fingerprint is shown."""
    settings = {"file": log, "state": tmp_path / "s", "from_start": True, "top": 10}
    writer = LogWriter(log)
    writer.write(2)
    made = ThreadlessSource(settings)
    made.collect()
    made.close()
    state = position.load_state(settings["state"])
    for one in state["digest"]["classes"]:
        del one["statement"]
    position.save_state(settings["state"], state)

    restored = ThreadlessSource(settings)
    before = lines(restored.collect(), "keylag_slow_log_class_info{")
    writer.write(2)
    restored.collect()
    after = lines(restored.collect(), "keylag_slow_log_class_info{")
    restored.close()

    assert ['statement="select' in one.lower() for one in before] == [True]
    assert before != after
    assert len(after) == 1


def test_class_has_one_statement_for_all_tags(log, tmp_path):
    settings = {"file": log, "state": None, "from_start": True, "top": 10}
    tag = b"/*keylag:route='r',operation='o'*/ "
    events = [b"SELECT a FROM t WHERE b IS NULL", tag + b"SELECT a FROM t WHERE b IS 1"]
    head = EVENT.partition(SET)[0] + SET
    log.write_bytes(b"".join(head + one + b";\n" for one in (*events, b"COMMIT")))
    made = ThreadlessSource(settings)
    made.collect()
    found = made.collect()
    made.close()

    infos = lines(found, "keylag_slow_log_class_info{")
    selects = [one for one in infos if "FROM t" in one]
    assert len(lines(found, "keylag_slow_log_calls_total{")) >= 3
    assert [
        'statement="SELECT a FROM t WHERE b IS NULL"' in one for one in selects
    ] == [True]
