"""The load plans agree with each other, with their README and with the reader."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from keylag import plans
from keylag.jmeter import USER_PROPERTIES
from keylag.jtl import SETUP
from keylag.phases import CATEGORIES
from keylag.properties import KINDS

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
        plans.find("token-issue").check({"thread": "1", "loops": "1"})
    with pytest.raises(plans.PlanError, match=r"Did you mean `threads`\?"):
        plans.find("token-issue").check({"thread": "1"})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("threads", "abc", "abc is not a whole number from 1 to 10000, such as 10"),
        ("threads", "0", "0 is not a whole number from 1"),
        ("threads", "-5", "-5 is not a whole number from 1"),
        ("threads", "", "empty is not a whole number"),
        ("threads", "٣", "is not a whole number"),
        ("loops", "0", "or -1 for no limit, such as 10"),
        ("duration_seconds", "10s", "number of seconds from 1 to 604800, such as 10."),
        ("duration_seconds", "1m", "from 1 to 604800, such as 3600"),
        ("rate_per_second", "nan", "nan is not a number from 0"),
        ("port", "70000", "70000 is not a whole number from 1 to 65535"),
        ("keep_alive", "yes", "yes is not true or false, such as true"),
        ("protocol", "ftp", "ftp is not http or https"),
        ("host", "http://k", "is not a host name or an address"),
        ("path_prefix", "identity", "a path that begins with /"),
        ("issue_percent", "130", "130 is not a whole number from 0 to 100"),
        ("issue_percent", "50", "issue_percent=50, validate_percent=70, revoke_per"),
    ],
)
def test_a_value_that_jmeter_would_misread_is_refused(
    name: str, value: str, words: str
) -> None:
    """JMeter would take it as zero, or as no limit."""
    with pytest.raises(plans.PlanError) as refused:
        plans.find("token-mixed").check({name: value})

    assert str(refused.value).startswith(f"{name}: ")
    assert words in str(refused.value)


def test_right_values_pass() -> None:
    """The ends of each range, and a share of which the others leave room."""
    shares = {"issue_percent": "0", "validate_percent": "100", "revoke_percent": "0"}
    values = {"loops": "-1", "threads": "10000", "rate_per_second": "0.5", **shares}

    plans.find("token-mixed").check(values)
    plans.find("token-validate").check({"service_password": "", "query": "?nocatalog"})


@pytest.mark.parametrize("name", NAMES)
def test_every_property_has_a_kind_that_its_default_is_of(name: str) -> None:
    """Otherwise a load that sets nothing could not be sent."""
    plan = plans.find(name)

    assert set(plan.defaults) <= set(KINDS)
    assert plan.mistakes(plan.defaults) == []


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
    expected = ["server_timing", "total_ms", *(f"{name}_ms" for name in CATEGORIES)]

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
    kinds = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|", text, re.MULTILINE)
    assert dict(kinds) == {name: KINDS[name].words for name in known}


def test_a_plan_may_be_a_path(tmp_path: Path) -> None:
    """An operator's own plan is run like ours."""
    path = tmp_path / "mine.jmx"
    path.write_text("<a>${__P(threads,2)} ${__P(loops,3)}</a>")

    plan = plans.find(str(path))

    assert (plan.name, plan.expected({})) == ("mine", 6)
