"""The simulation of first rounds, with few experiments."""

from simulate_first_rounds import LOADS, NEEDED, ROUNDS, table_rows


def test_first_rounds_end_hopeless_runs_and_rarely_others() -> None:
    rows = list(table_rows(20))

    assert len(rows) == len(LOADS) * len(ROUNDS)
    for row in rows:
        shares = [float(share.rstrip("%")) for share in row[-len(NEEDED) :]]
        assert shares == sorted(shares)
        assert shares[0] <= 15
        assert shares[-1] >= 20
