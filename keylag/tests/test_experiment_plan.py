"""Plans: what is refused, and on which line."""

from pathlib import Path

import pytest

from keylag.experiment import reading
from keylag.experiment.arms import of_block, options_of, prepared_for
from keylag.experiment.lines import line_of
from keylag.experiment.schedule import Turn
from keylag.experiment.settings import Arm
from keylag.state import CHECKOUT

GOOD = """\
question = "Which?"
base = "plain"

[load]
plan = "token-issue"
properties = { threads = 2 }

[design]
minutes = 10

[decision]
method = "POST"

[arms.plain]
processes = 4
keystone.identity.password_hash_rounds = 10

[arms.other]
cache = "redis"
keystone.token.allow_expired_window = 0
"""


def write(tmp_path: Path, text: str) -> Path:
    """Write a plan."""
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_an_arm_is_the_base_and_its_differences(tmp_path: Path) -> None:
    """What an arm does not say is the base's; tables are merged."""
    found = reading.read(write(tmp_path, GOOD))
    arm = found.whole_arm("other")

    assert found.order == ["plain", "other"]
    assert (arm.cache, arm.processes) == ("redis", 4)
    assert arm.keystone == {
        "identity": {"password_hash_rounds": 10},
        "token": {"allow_expired_window": 0},
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('base = "plain"', 'base = "plan"', ":2: base: there is no such arm"),
        ('"token-issue"', '"token-isue"', ":5: load.plan: There is no load plan"),
        ("threads = 2", "thread = 2", ":6: load.properties.thread: token-issue takes"),
        ("threads = 2", "loops = 2", ":6: load.properties.loops: an experiment sets"),
        ("minutes = 10", "minutes = 0.1", ":9: design.minutes: 5 blocks"),
        ("minutes = 10", 'minutes = "10"', ":9: design.minutes: Input should be"),
        ("minutes = 10", "minuets = 10", ":9: design.minuets: Extra inputs"),
        ('"POST"', '"GET"', ":12: decision.method: token-issue sends no GET"),
        ('method = "POST"', "", ":11: decision.method: Field required"),
        ("processes = 4", "processes = 0", ":15: arms.plain.processes: Input should"),
        ('"redis"', '"rediss"', ":19: arms.other.cache: there are null"),
        ("[arms.other]", "[arms.other", "line 18"),
        ("[arms.other]", '[arms."../x"]', ":18: arms.../x.[key]: String should"),
        (
            "token.allow_expired_window",
            "cache.backend",
            ":20: arms.other.keystone.cache.backend: the stack sets this",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    """Each kind of mistake, where it stands."""
    path = write(tmp_path, GOOD.replace(old, new, 1))

    with pytest.raises(reading.PlanError) as refused:
        reading.read(path)
    assert words in str(refused.value)


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    """So that nobody has to start again for each."""
    text = GOOD.replace("processes = 4", "processes = 0").replace("10\n", '"x"\n', 1)

    with pytest.raises(reading.PlanError, match=r"(?s):9: .*:15: "):
        reading.read(write(tmp_path, text))


def test_no_plan_at_all(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(reading.PlanError, match=r"nothing\.toml"):
        reading.read(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("place", "line"),
    [(("a",), 1), (("b", "c"), 3), (("b", "missing"), 2), (("x y", "d"), 5), ((), 1)],
)
def test_lines_of_values_and_of_what_is_missing(
    place: tuple[str, ...], line: int
) -> None:
    """Something missing stands at the table that should hold it."""
    text = 'a = 1\n[b]\nc = [\n 2,\n]\n["x y"]\nd = 3\n'.replace("\n]\n", "]\n")

    assert line_of(text, place) == line + (place[:1] == ("x y",))


def test_the_plans_that_ship_are_right() -> None:
    """Each of them can be run."""
    folder = CHECKOUT / "experiments"
    found = {path.stem: reading.read(path) for path in folder.glob("*.toml")}

    assert len(found) >= 5
    assert all(one.question.endswith("?") for one in found.values())


def test_settings_become_what_the_servers_read(tmp_path: Path) -> None:
    """Options of keystone.conf are variables; the password's cost changes the data."""
    found = reading.read(write(tmp_path, GOOD))
    plain, default = found.whole_arm("plain"), Arm()
    options = options_of(plain, of_block("plain", Turn(0, 0, "plain", 7), None))

    expected = {"OS_IDENTITY__PASSWORD_HASH_ROUNDS": "10", "PYTHONHASHSEED": "7"}
    assert expected.items() <= options.environment.items()
    assert options.mariadb == {"slow_query_log": "0"}
    assert prepared_for(plain).key != prepared_for(default).key
    assert prepared_for(default).key == prepared_for(Arm(cache="null")).key
