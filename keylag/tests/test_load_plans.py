"""Consistency of the load plans with each other, their README and the reader."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from keylag import load_plans
from keylag.jmeter import USER_PROPERTIES
from keylag.jtl import SETUP_PREFIX
from keylag.phases import CATEGORIES
from keylag.plan_properties import PROPERTY_TYPES

NAMES = (
    "object-storage",
    "service-call",
    "token-issue",
    "token-mixed",
    "token-validate",
)


def tree(name: str) -> ET.Element:
    """Return the XML tree of a plan."""
    return ET.parse(load_plans.find_plan(name).path).getroot()  # noqa: S314 - our own file


def extractors(name: str) -> dict[str, str]:
    """Return the regular expressions for Server-Timing by variable."""
    found = {}
    for element in tree(name).iter("RegexExtractor"):
        texts = {prop.get("name"): prop.text or "" for prop in element}
        if "Server-Timing" in texts["RegexExtractor.regex"]:
            assert texts["RegexExtractor.default_empty_value"] == "true"
            found[texts["RegexExtractor.refname"]] = texts["RegexExtractor.regex"]
    return found


def saved_variables() -> list[str]:
    """Return the variables that user.properties saves as columns."""
    text = USER_PROPERTIES.read_text()
    (names,) = re.findall(r"^sample_variables=(.*)$", text, re.MULTILINE)
    return str(names).split(",")


def test_plans_are_found_by_name() -> None:
    assert tuple(load_plans.list_plans()) == NAMES
    assert load_plans.find_plan("token-issue") == load_plans.find_plan(
        "token-issue.jmx"
    )


def test_unknown_plan_error_lists_plans() -> None:
    with pytest.raises(
        load_plans.PlanError, match="token-issue, token-mixed, token-val"
    ):
        load_plans.find_plan("token-isue")


def test_unknown_property_error_lists_properties() -> None:
    """JMeter accepts any property and ignores unknown ones."""
    with pytest.raises(
        load_plans.PlanError, match=r"takes no such property\..*threads"
    ):
        load_plans.find_plan("token-issue").validate({"thread": "1", "loops": "1"})
    with pytest.raises(load_plans.PlanError, match=r"Did you mean `threads`\?"):
        load_plans.find_plan("token-issue").validate({"thread": "1"})


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
def test_invalid_values_are_rejected(name: str, value: str, words: str) -> None:
    """JMeter reads them as zero or as no limit."""
    with pytest.raises(load_plans.PlanError) as refused:
        load_plans.find_plan("token-mixed").validate({name: value})

    assert str(refused.value).startswith(f"{name}: ")
    assert words in str(refused.value)


def test_values_at_the_limits_are_valid() -> None:
    shares = {"issue_percent": "0", "validate_percent": "100", "revoke_percent": "0"}
    values = {"loops": "-1", "threads": "10000", "rate_per_second": "0.5", **shares}

    load_plans.find_plan("token-mixed").validate(values)
    load_plans.find_plan("token-validate").validate(
        {"service_password": "", "query": "?nocatalog"}
    )


def test_open_load_needs_a_rate_and_endless_virtual_users() -> None:
    plan = load_plans.find_plan("token-issue")
    rate = {"rate_per_second": "5"}

    plan.validate({"arrivals": "50", "loops": "-1", **rate})
    with pytest.raises(load_plans.PlanError, match="arrivals: needs rate_per_second"):
        plan.validate({"arrivals": "50", "loops": "-1"})
    with pytest.raises(load_plans.PlanError, match="arrivals: needs loops=-1"):
        plan.validate({"arrivals": "50", **rate})


@pytest.mark.parametrize("name", NAMES)
def test_default_values_are_valid(name: str) -> None:
    plan = load_plans.find_plan(name)

    assert set(plan.defaults) <= set(PROPERTY_TYPES)
    assert plan.find_mistakes(plan.defaults) == []


@pytest.mark.parametrize("name", NAMES)
def test_default_load_is_100_requests_in_10_seconds(name: str) -> None:
    plan = load_plans.find_plan(name)

    assert plan.defaults["ramp_seconds"] == "10"
    assert plan.expected_requests({}) == 100
    assert plan.expected_requests({"loops": "-1"}) is None


@pytest.mark.parametrize("name", NAMES)
def test_plans_extract_all_saved_variables(name: str) -> None:
    expected = ["server_timing", "total_ms", *(f"{name}_ms" for name in CATEGORIES)]

    assert saved_variables() == [
        *expected,
        "sql_statements",
        "cache_calls",
        "arrival_ms",
    ]
    assert set(extractors(name)) | {"arrival_ms"} == set(saved_variables())


def test_plans_have_identical_extractors() -> None:
    first, *others = (extractors(name) for name in NAMES)

    assert others == [first] * len(others)


def test_plans_have_identical_turn_scripts() -> None:
    """The plan's timer for its rate precedes the script."""
    found = {
        prop.text
        for name in NAMES
        for action in tree(name).iterfind(".//TestAction[@testname='Turn']")
        for prop in action.iterfind("*[@name='ActionProcessor.duration']")
    }
    arrivals = {
        prop.text
        for name in NAMES
        for timer in tree(name).iterfind(".//JSR223Timer[@testname='Arrival']")
        for prop in timer.iterfind("*[@name='script']")
    }
    pace = ".//TestAction[@testname='Turn']/../*/ConstantThroughputTimer"
    paced = [name for name in NAMES if tree(name).find(pace) is not None]

    assert len(found) == len(arrivals) == 1
    assert "slice_number" in str(found)
    assert "arrivals_seed" in str(arrivals)
    assert tuple(paced) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_labels_have_method_route_and_auth_method(name: str) -> None:
    labels = {
        element.get("testname", "").removeprefix(SETUP_PREFIX)
        for element in tree(name).iter("HTTPSamplerProxy")
    }

    assert labels
    assert labels <= {
        "POST /v3/auth/tokens password",
        "GET /v3/auth/tokens",
        "DELETE /v3/auth/tokens",
        "GET service",
        "PUT container",
        "PUT object",
        "GET object",
        "DELETE object",
    }


def test_readme_lists_all_properties_and_defaults() -> None:
    text = (load_plans.PLANS_FOLDER / "README.md").read_text()
    rows = dict(
        re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`|empty) \|", text, re.MULTILINE)
    )
    known: dict[str, str] = {}
    for name in NAMES:
        known |= load_plans.find_plan(name).defaults

    assert rows == known
    descriptions = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|", text, re.MULTILINE)
    assert dict(descriptions) == {
        name: PROPERTY_TYPES[name].description for name in known
    }


@pytest.mark.parametrize("name", NAMES)
def test_descriptions_of_properties_are_those_of_the_readme(name: str) -> None:
    text = (load_plans.PLANS_FOLDER / "README.md").read_text()
    meanings = dict(
        re.findall(r"^\| `(\w+)` (?:\| [^|]+ ){3}\| ([^|]+) \|$", text, re.MULTILINE)
    )

    arguments = [
        {prop.get("name"): prop.text for prop in element}
        for element in tree(name).iter("elementProp")
        if element.find("stringProp[@name='Argument.desc']") is not None
    ]

    assert len(arguments) >= len(load_plans.find_plan(name).defaults)
    assert [each["Argument.desc"] for each in arguments] == [
        meanings[str(each["Argument.name"])] for each in arguments
    ]


def test_plan_is_found_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.jmx"
    path.write_text("<a>${__P(threads,2)} ${__P(loops,3)}</a>")

    plan = load_plans.find_plan(str(path))

    assert (plan.name, plan.expected_requests({})) == ("mine", 6)
