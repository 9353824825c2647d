"""InsertCounter with a real table: purges, Galera ids and clock changes."""

import pytest
from test_revocations import KEYS, create, fill, insert

from keylag_exporters.insert_counter import EVENTS_BY_SECOND_QUERY, InsertCounter

CHAIN = {"audit_chain_id": "c"}
TABLE = "keystone.revocation_event"


@pytest.fixture
def table(mariadb):
    create(mariadb)
    yield mariadb
    mariadb.execute(
        "SET GLOBAL auto_increment_increment = 1, GLOBAL auto_increment_offset = 1"
    )


@pytest.fixture
def count_inserts(table):
    """A function that reads the table and returns the total; `step` moves the clock."""
    counter = InsertCounter()

    def read(step=0):
        with table.connect(database="keystone") as connection:
            cursor = connection.cursor()
            cursor.execute(f"SET timestamp = UNIX_TIMESTAMP() + {step}")
            counter.read(cursor, 1_000_000)
        return counter.total

    return read


@pytest.mark.stack
def test_events_before_the_first_read_are_not_counted(table, count_inserts):
    insert(table, [(1, CHAIN)] * 3)

    assert count_inserts() == 0
    insert(table, [(0, CHAIN)] * 2)
    assert count_inserts() == 2
    assert count_inserts() == 2


@pytest.mark.stack
def test_galera_auto_increment_steps_do_not_inflate_the_count(table, count_inserts):
    """A Galera cluster of three nodes sets these variables on each node."""
    table.execute(
        "SET GLOBAL auto_increment_increment = 3, GLOBAL auto_increment_offset = 2"
    )
    count_inserts()
    insert(table, [(0, CHAIN)] * 10)

    assert count_inserts() == 10
    assert table.execute(f"SELECT MAX(id) FROM {TABLE}") == ((29,),)


@pytest.mark.stack
@pytest.mark.parametrize("emptied", [f"TRUNCATE {TABLE}", f"DELETE FROM {TABLE}"])
def test_count_is_unaffected_by_truncate_and_delete(table, count_inserts, emptied):
    count_inserts()
    insert(table, [(10, CHAIN)] * 10)
    assert count_inserts() == 10
    table.execute(emptied)
    assert count_inserts() == 10
    insert(table, [(0, CHAIN)] * 4)

    assert count_inserts() == 14


@pytest.mark.stack
def test_purge_between_two_reads_hides_no_insert(table, count_inserts):
    """Keystone purges expired events with each insert."""
    insert(table, [(7000, CHAIN)] * 10)
    count_inserts()
    insert(table, [(0, CHAIN)] * 3)
    table.execute(
        f"DELETE FROM {TABLE} WHERE revoked_at < UTC_TIMESTAMP() - INTERVAL 1 HOUR"
    )

    assert count_inserts() == 3


@pytest.mark.stack
def test_late_commit_is_counted(table, count_inserts):
    """Its id is smaller than a counted one, and its second is already counted."""
    with table.connect() as slow, slow.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(
            f"INSERT INTO {TABLE} (issued_before, revoked_at)"
            " VALUES (UTC_TIMESTAMP(), UTC_TIMESTAMP() - INTERVAL 60 SECOND)"
        )
        count_inserts()
        insert(table, [(0, CHAIN)])
        assert count_inserts() == 1
        cursor.execute("COMMIT")

    assert count_inserts() == 2


@pytest.mark.stack
def test_events_from_a_clock_that_is_ahead_are_counted_once(table, count_inserts):
    count_inserts()
    insert(table, [(-3600, CHAIN)])

    assert count_inserts() == 1
    assert count_inserts() == 1


@pytest.mark.stack
def test_events_during_an_hour_without_reads_are_counted(table, count_inserts):
    """The database was unreachable in between."""
    count_inserts(step=-3600)
    insert(table, [(ago, CHAIN) for ago in (3000, 1200, 60)])

    assert count_inserts() == 3


@pytest.mark.stack
@pytest.mark.parametrize("step", [-3600, 3600])
def test_step_of_the_database_clock_adds_nothing(table, count_inserts, step):
    insert(table, [(ago, CHAIN) for ago in range(0, 7200, 600)])
    count_inserts()

    assert count_inserts(step) == 0
    assert count_inserts() == 0
    insert(table, [(0, CHAIN)])
    assert count_inserts() == 1


@pytest.mark.stack
def test_read_scans_only_recent_index_entries(table):
    fill(table, 100_000)
    statement = EVENTS_BY_SECOND_QUERY.format(limit=1_000_000).replace(
        "%s", "UTC_TIMESTAMP() - INTERVAL 360 SECOND"
    )
    counters = "SHOW SESSION STATUS LIKE 'Handler_read%'"
    with table.connect(database="keystone") as connection:
        cursor = connection.cursor()
        cursor.execute(f"EXPLAIN {statement}")
        plan = {row[2]: row for row in cursor.fetchall()}
        cursor.execute("FLUSH STATUS")
        cursor.execute(statement)
        events = sum(count for _, count in cursor.fetchall())
        cursor.execute(counters)
        read = {name: int(value) for name, value in cursor.fetchall()}

    assert plan["revocation_event"][5] == f"k{KEYS.index('revoked_at')}"
    assert "Using index" in plan["revocation_event"][-1]
    assert 3000 < events < 3600
    assert read["Handler_read_next"] <= events + 1
