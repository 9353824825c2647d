"""Arms whose requests share Keystone with more or fewer others."""

from pathlib import Path

import pytest

from keylag.experiment import plan_parser
from keylag.experiment.idle_clients import find_idle_clients

PLAN = """\
question = "Which?"
base = "a"
[load]
plan = "token-validate"
properties = {{ threads = {threads} }}
[decision]
method = "GET"
measure = "{measure}"
smallest = 0.05
[arms.a]
[arms.b]
"""


def warnings(
    folder: Path,
    arm: tuple[float, float] | None,
    threads: int = 4,
    measure: str = "mean",
) -> list[str]:
    """Return the warnings on an arm by its rate and mean; the base has 10/s, 0.37 s."""
    (folder / "plan.toml").write_text(PLAN.format(threads=threads, measure=measure))
    figures = {"a": {0: {"throughput": 10.0, "mean": 0.37}}}
    if arm:
        figures["b"] = {0: {"throughput": arm[0], "mean": arm[1]}}
    plan = plan_parser.read_plan(folder / "plan.toml")
    return list(find_idle_clients(plan, figures))


@pytest.mark.parametrize(
    ("arm", "busy"), [((9.9, 0.32), "3.17"), ((9.95, 0.36), "3.58")]
)
def test_faster_requests_at_the_same_rate_had_fewer_busy_clients(
    tmp_path: Path, arm: tuple[float, float], busy: str
) -> None:
    (text,) = warnings(tmp_path, arm)

    assert f"Of 4 clients, 3.70 were busy at a time with a and {busy} with b." in text


@pytest.mark.parametrize(
    ("arm", "threads"), [((12.3, 0.30), 4), ((9.9, 0.32), 1), (None, 4)]
)
def test_equally_busy_clients_need_no_warning(
    tmp_path: Path, arm: tuple[float, float] | None, threads: int
) -> None:
    assert warnings(tmp_path, arm, threads) == []


def test_requests_per_second_depend_on_busy_clients_too(tmp_path: Path) -> None:
    (text,) = warnings(tmp_path, (9.9, 0.32), measure="throughput")

    assert "fewer are answered in a second" in text
