"""The table of what the fixes of docs/upstream would save."""

import json
from pathlib import Path
from typing import Any

from keylag_dev import upstream_page
from keylag_dev.generated_tables import BLOCK

EMPTY = (
    "before\n<!-- savings, by `python -m keylag_dev.upstream_page` -->\nold\n"
    "<!-- end of savings -->\nafter\n"
)
REDIS = "redis-request-cache, after stale-request-context"


def test_page_has_the_savings_of_the_results() -> None:
    text = upstream_page.PAGE.read_text(encoding="utf-8")

    assert BLOCK.search(text)
    assert upstream_page.render(text) == text


def write_result(folder: Path, method: str, **arms: dict[str, Any]) -> None:
    """Write a result with the figures of arms."""
    result = {
        "decision": {"method": method},
        "plan": {"load": {"properties": {"threads": 2}}},
        "comparisons": [
            {"arm": name, "method": method, "parts": {}, **figures}
            for name, figures in arms.items()
        ],
    }
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(result))


def time(base: float, low: float | None, mid: float, high: float) -> dict[str, Any]:
    """Return a time and its difference, as results of experiments have them."""
    return {"base": base, "absolute": {"low": low, "mid": mid, "high": high}}


def test_rows_have_workers_with_the_sign_of_the_difference(tmp_path: Path) -> None:
    saves = {"mean": time(0.026, -0.018, -0.012, -0.003)}
    costs = {"mean": time(0.013, None, 0.002, 0.003)}
    hashes = {
        "measures": {"mean": time(0.3, -0.2, -0.18, -0.1)},
        "parts": {"password_hash": time(0.2, -0.199, -0.161, -0.093)},
    }
    write_result(tmp_path / "upstream-redis", "GET", fixed={"measures": saves})
    write_result(tmp_path / "upstream-context", "GET", fixed={"measures": costs})
    write_result(tmp_path / "upstream-scrypt", "POST", fixed=hashes)

    found = upstream_page.render(EMPTY, tmp_path)

    redis = "2 | 26 ms | -12.0 ms [-18.0, -3.0] | 12.0 [3.0, 18.0] | [`upstream-redis`]"
    assert f"| {REDIS} | a validation with Redis | {redis}" in found
    assert "| 13 ms | 2.0 ms | -2.0 | [`upstream-context`]" in found
    assert "| 200 ms | -161.0 ms [-199.0, -93.0] | 161.0 [93.0, 199.0] |" in found
    assert found.startswith("before\n")
    assert found.endswith("after\n")
    assert "old" not in found


def test_a_fix_without_which_nothing_is_served_has_rates(tmp_path: Path) -> None:
    write_result(
        tmp_path / "upstream-pymemcache",
        "GET",
        installed={"measures": {}},
        fixed={"measures": {"throughput": {"arm": 7.7}}},
    )

    found = upstream_page.render(EMPTY, tmp_path)

    assert "| 2 | 0.0 calls/s | +7.7 calls/s | - | [`upstream-pymemcache`]" in found
    assert "| it succeeds | no measured saving |" in found
    assert f"| {REDIS} | a validation with Redis | - | - | - |" in found
