"""The growth of a real revocation table, as purges, Galera and restarts leave it."""

import pytest
from test_revocations import KEYS, create, fill, insert

from keylag_exporters.insert_counter import EVENTS_BY_SECOND, InsertCounter

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
def counted(table):
    """Return a function: the counter's total after a reading, by a clock's step."""
    counter = InsertCounter()

    def read(step=0):
        with table.connect(database="keystone") as connection:
            cursor = connection.cursor()
            cursor.execute(f"SET timestamp = UNIX_TIMESTAMP() + {step}")
            counter.read(cursor, 1_000_000)
        return counter.total

    return read


@pytest.mark.stack
def test_events_from_before_the_first_reading_do_not_count(table, counted):
    insert(table, [(1, CHAIN)] * 3)

    assert counted() == 0
    insert(table, [(0, CHAIN)] * 2)
    assert counted() == 2
    assert counted() == 2


@pytest.mark.stack
def test_ids_in_steps_of_three_count_as_one_event_each(table, counted):
    """A three-node Galera sets these two variables on each node."""
    table.execute(
        "SET GLOBAL auto_increment_increment = 3, GLOBAL auto_increment_offset = 2"
    )
    counted()
    insert(table, [(0, CHAIN)] * 10)

    assert counted() == 10
    assert table.execute(f"SELECT MAX(id) FROM {TABLE}") == ((29,),)


@pytest.mark.stack
@pytest.mark.parametrize("emptied", [f"TRUNCATE {TABLE}", f"DELETE FROM {TABLE}"])
def test_an_emptied_table_neither_steps_back_nor_jumps(table, counted, emptied):
    counted()
    insert(table, [(10, CHAIN)] * 10)
    assert counted() == 10
    table.execute(emptied)
    assert counted() == 10
    insert(table, [(0, CHAIN)] * 4)

    assert counted() == 14


@pytest.mark.stack
def test_a_purge_between_two_readings_hides_no_insert(table, counted):
    """Keystone purges what expired with every event that it inserts."""
    insert(table, [(7000, CHAIN)] * 10)
    counted()
    insert(table, [(0, CHAIN)] * 3)
    table.execute(
        f"DELETE FROM {TABLE} WHERE revoked_at < UTC_TIMESTAMP() - INTERVAL 1 HOUR"
    )

    assert counted() == 3


@pytest.mark.stack
def test_an_event_that_is_committed_late_counts(table, counted):
    """Its id is smaller than one that has been counted, and its second is over."""
    with table.connect() as slow, slow.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(
            f"INSERT INTO {TABLE} (issued_before, revoked_at)"
            " VALUES (UTC_TIMESTAMP(), UTC_TIMESTAMP() - INTERVAL 60 SECOND)"
        )
        counted()
        insert(table, [(0, CHAIN)])
        assert counted() == 1
        cursor.execute("COMMIT")

    assert counted() == 2


@pytest.mark.stack
def test_a_host_whose_clock_is_ahead_is_counted_once(table, counted):
    counted()
    insert(table, [(-3600, CHAIN)])

    assert counted() == 1
    assert counted() == 1


@pytest.mark.stack
def test_events_of_an_hour_without_a_reading_count(table, counted):
    """The database could not be reached meanwhile."""
    counted(step=-3600)
    insert(table, [(ago, CHAIN) for ago in (3000, 1200, 60)])

    assert counted() == 3


@pytest.mark.stack
@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_step_of_the_databases_clock_adds_nothing(table, counted, step):
    insert(table, [(ago, CHAIN) for ago in range(0, 7200, 600)])
    counted()

    assert counted(step) == 0
    assert counted() == 0
    insert(table, [(0, CHAIN)])
    assert counted() == 1


@pytest.mark.stack
def test_a_reading_scans_recent_events_of_the_index_alone(table):
    fill(table, 100_000)
    statement = EVENTS_BY_SECOND.format(limit=1_000_000).replace(
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
