"""Reading the Server-Timing header."""

import pytest

from keylag.phases import CATEGORIES, PHASES, category_of, in_order
from keylag.server_timing import BadServerTimingError, parse

HEADER = (
    "total;dur=12.0000, sql;dur=7.0000, cache;dur=4.0000, other;dur=1.0000, "
    "sql_statements;desc=6, cache_calls;desc=17, sql.validate;dur=7.0000, "
    "cache.roles;dur=4.0000, other.other;dur=1.0000"
)


def test_milliseconds_become_seconds() -> None:
    """The header counts milliseconds, everything after it seconds."""
    timing = parse(HEADER)

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


def test_entries_of_a_proxy_are_passed_over() -> None:
    """What another party adds to the header is not ours to count."""
    timing = parse('edge;dur=3, cdn-cache;desc=HIT, a.b;dur=4, total;dur="2.5"')

    assert timing.total_seconds == pytest.approx(0.0025)
    assert timing.cells == {}


def test_a_new_phase_of_a_known_operation_is_kept() -> None:
    """A newer instrumentation may know a phase that we do not."""
    timing = parse("total;dur=2, dns.validate;dur=2")

    assert timing.cells == {("dns", "validate"): 0.002}
    assert category_of(("dns", "validate")) == "other"


@pytest.mark.parametrize(
    "header", ["", "sql;dur=1", "total;dur=fast", "total;dur=nan", "total;dur=-1"]
)
def test_a_header_without_a_usable_total_is_refused(header: str) -> None:
    """A breakdown of nothing would be a lie."""
    with pytest.raises(BadServerTimingError):
        parse(header)


def test_parts_within_the_rounding_add_up() -> None:
    """Four decimals may each be off by half of the last one, and no more."""
    assert parse("total;dur=1.0001, sql.roles;dur=0.5, orm.roles;dur=0.5").adds_up()
    assert not parse("total;dur=1.0010, sql.roles;dur=0.5, orm.roles;dur=0.5").adds_up()


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
def test_the_operation_decides_before_the_phase(
    cell: tuple[str, str], category: str
) -> None:
    """All that is done to check revocation is revocation."""
    assert category == category_of(cell)
    assert category in CATEGORIES


def test_known_names_come_in_their_order_before_unknown_ones() -> None:
    """Tables keep one order whatever a run happened to do."""
    found = in_order({"zebra", "other", "cache", "ant", "sql"}, PHASES)

    assert found == ["sql", "cache", "other", "ant", "zebra"]
