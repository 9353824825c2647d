"""Parsing of the Server-Timing header."""

import pytest

from keylag.phases import CATEGORIES, PHASES, category_of, sort_known_first
from keylag.server_timing import BadServerTimingError, parse_server_timing

HEADER = (
    "total;dur=12.0000, sql;dur=7.0000, cache;dur=4.0000, other;dur=1.0000, "
    "sql_statements;desc=6, cache_calls;desc=17, sql.validate;dur=7.0000, "
    "cache.roles;dur=4.0000, other.other;dur=1.0000"
)


def test_milliseconds_become_seconds() -> None:
    timing = parse_server_timing(HEADER)

    assert timing.total_seconds == pytest.approx(0.012)
    assert timing.categories == pytest.approx(
        {"sql": 0.007, "cache": 0.004, "other": 1e-3}
    )
    assert timing.cells == pytest.approx(
        {
            ("sql", "validate"): 0.007,
            ("cache", "roles"): 0.004,
            ("other", "other"): 1e-3,
        }
    )
    assert timing.counts == {"sql_statements": 6, "cache_calls": 17}


def test_entries_of_other_servers_are_ignored() -> None:
    timing = parse_server_timing(
        'edge;dur=3, cdn-cache;desc=HIT, a.b;dur=4, total;dur="2.5"'
    )

    assert timing.total_seconds == pytest.approx(0.0025)
    assert timing.cells == {}


def test_unknown_phase_of_a_known_operation_is_kept() -> None:
    timing = parse_server_timing("total;dur=2, dns.validate;dur=2")

    assert timing.cells == {("dns", "validate"): 0.002}
    assert category_of(("dns", "validate")) == "other"


@pytest.mark.parametrize(
    "header", ["", "sql;dur=1", "total;dur=fast", "total;dur=nan", "total;dur=-1"]
)
def test_header_without_valid_total_is_rejected(header: str) -> None:
    with pytest.raises(BadServerTimingError):
        parse_server_timing(header)


def test_cells_add_up_within_rounding() -> None:
    assert parse_server_timing(
        "total;dur=1.0001, sql.roles;dur=0.5, orm.roles;dur=0.5"
    ).adds_up()
    assert not parse_server_timing(
        "total;dur=1.0010, sql.roles;dur=0.5, orm.roles;dur=0.5"
    ).adds_up()


@pytest.mark.parametrize(
    ("cell", "category"),
    [
        (("sql", "validate"), "sql"),
        (("sql_pool", "roles"), "sql"),
        (("sql", "check_revocation"), "revocation"),
        (("revocation_match", "check_revocation"), "revocation"),
        (("cache", "check_revocation"), "revocation"),
        (("cache", "catalog"), "cache"),
        (("password_hash", "authenticate"), "password_hash"),
        (("policy", "enforce"), "other"),
    ],
)
def test_operation_takes_precedence_over_phase(
    cell: tuple[str, str], category: str
) -> None:
    assert category == category_of(cell)
    assert category in CATEGORIES


def test_known_names_sort_before_unknown_ones() -> None:
    found = sort_known_first({"zebra", "other", "cache", "ant", "sql"}, PHASES)

    assert found == ["sql", "cache", "other", "ant", "zebra"]
