"""The breakdown model: cells, names and categories."""

from keylag_otel.model import (
    CATEGORIES,
    CATEGORY_OF_CELL,
    CELLS,
    OPERATIONS,
    PHASE_MASK,
    PHASES,
    cell_of,
)
from keylag_otel.request_timer import start_timer


def test_every_phase_fits_into_the_bits_of_a_cell() -> None:
    assert len(PHASES) <= PHASE_MASK + 1


def test_every_pair_is_a_cell_of_its_own() -> None:
    assert len(PHASES) * len(OPERATIONS) == len(CELLS)


def test_new_timer_starts_in_the_web_framework() -> None:
    assert CELLS[start_timer({"REQUEST_METHOD": "GET"}).current_cell] == (
        "wsgi",
        "other",
    )


def test_every_cell_belongs_to_one_category() -> None:
    assert set(CELLS) == set(CATEGORY_OF_CELL)
    assert set(CATEGORY_OF_CELL.values()) == set(CATEGORIES)


def test_operation_check_revocation_is_category_revocation() -> None:
    categories = {CATEGORY_OF_CELL[cell_of(p, "check_revocation")] for p in PHASES}

    assert categories == {"revocation"}


def test_waiting_for_a_connection_is_sql_time() -> None:
    assert CATEGORY_OF_CELL[cell_of("sql_pool", "validate")] == "sql"
