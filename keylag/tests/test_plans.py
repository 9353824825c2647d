"""The load plans agree with each other, with their README and with the reader."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from keylag import plans
from keylag.jmeter import USER_PROPERTIES
from keylag.jtl import SETUP
from keylag.phases import BLOCKS

NAMES = ("service-call", "token-issue", "token-mixed", "token-validate")


def tree(name: str) -> ET.Element:
    """Parse a plan of ours."""
    return ET.parse(plans.find(name).path).getroot()  # noqa: S314 - our own file


def extractors(name: str) -> dict[str, str]:
    """Return the expressions that take Server-Timing apart, by variable."""
    found = {}
    for element in tree(name).iter("RegexExtractor"):
        texts = {prop.get("name"): prop.text or "" for prop in element}
        if "Server-Timing" in texts["RegexExtractor.regex"]:
            assert texts["RegexExtractor.default_empty_value"] == "true"
            found[texts["RegexExtractor.refname"]] = texts["RegexExtractor.regex"]
    return found


def saved_variables() -> list[str]:
    """Return the variables that our settings make columns of."""
    text = USER_PROPERTIES.read_text()
    (names,) = re.findall(r"^sample_variables=(.*)$", text, re.MULTILINE)
    return str(names).split(",")


def test_the_plans_are_found_by_name() -> None:
    """A name, with or without its ending, is enough."""
    assert tuple(plans.known()) == NAMES
    assert plans.find("token-issue") == plans.find("token-issue.jmx")


def test_a_wrong_plan_lists_the_right_ones() -> None:
    """A typing error costs one reading."""
    with pytest.raises(plans.PlanError, match="token-issue, token-mixed, token-val"):
        plans.find("token-isue")


def test_a_wrong_property_lists_the_right_ones() -> None:
    """JMeter itself would take any property and ignore it."""
    with pytest.raises(plans.PlanError, match=r"no property thread\..*threads"):
        plans.find("token-issue").check(["thread", "loops"])


@pytest.mark.parametrize("name", NAMES)
def test_the_default_load_is_a_hundred_requests_in_ten_seconds(name: str) -> None:
    """10 virtual users over 10 s, 10 requests each."""
    plan = plans.find(name)

    assert plan.defaults["ramp_seconds"] == "10"
    assert plan.expected({}) == 100
    assert plan.expected({"loops": "-1"}) is None


@pytest.mark.parametrize("name", NAMES)
def test_every_server_timing_variable_is_extracted_and_saved(name: str) -> None:
    """The plans and the settings name the same columns."""
    expected = ["server_timing", "total_ms", *(f"{block}_ms" for block in BLOCKS)]

    assert saved_variables() == [*expected, "sql_statements", "cache_calls"]
    assert set(extractors(name)) == set(saved_variables())


def test_the_plans_read_server_timing_alike() -> None:
    """Four copies of the same expressions stay the same."""
    first, *others = (extractors(name) for name in NAMES)

    assert others == [first] * 3


def test_the_plans_take_turns_alike() -> None:
    """Four copies of one script, each with the plan's pace before it."""
    found = {
        prop.text
        for name in NAMES
        for action in tree(name).iterfind(".//TestAction[@testname='Turn']")
        for prop in action.iterfind("*[@name='ActionProcessor.duration']")
    }
    pace = ".//TestAction[@testname='Turn']/../*/ConstantThroughputTimer"
    paced = [name for name in NAMES if tree(name).find(pace) is not None]

    assert len(found) == 1
    assert "slice_number" in str(found)
    assert tuple(paced) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_method_route_and_method_of_authentication(name: str) -> None:
    """What the break-down groups by is written in the plans."""
    labels = {
        element.get("testname", "").removeprefix(SETUP)
        for element in tree(name).iter("HTTPSamplerProxy")
    }

    assert labels
    assert labels <= {
        "POST /v3/auth/tokens password",
        "GET /v3/auth/tokens",
        "DELETE /v3/auth/tokens",
        "GET service",
    }


def test_the_readme_lists_every_property_with_its_default() -> None:
    """The table is of the plans as they are."""
    text = (plans.FOLDER / "README.md").read_text()
    rows = dict(
        re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`|empty) \|", text, re.MULTILINE)
    )
    known: dict[str, str] = {}
    for name in NAMES:
        known |= plans.find(name).defaults

    assert rows == known


def test_a_plan_may_be_a_path(tmp_path: Path) -> None:
    """An operator's own plan is run like ours."""
    path = tmp_path / "mine.jmx"
    path.write_text("<a>${__P(threads,2)} ${__P(loops,3)}</a>")

    plan = plans.find(str(path))

    assert (plan.name, plan.expected({})) == ("mine", 6)
