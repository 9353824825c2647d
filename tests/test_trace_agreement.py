"""One validation without a cache, explained from all its sources."""

from collections.abc import Iterator

import pytest

from keylag.demo import SAMPLE_CLOUD
from keylag.server_timing import parse_server_timing
from keylag.services import is_installed, select_services
from keylag.services.otel_collector import TRACE_STORES, traces_file
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag.trace import analysis, keystone_access, sources
from keylag.trace.calls import SentCall
from keylag.trace.explanation import Explanation

pytestmark = pytest.mark.stack

UNCACHED = StackOptions(processes=1, environment={"OS_CACHE__ENABLED": "false"})
OF_METRICS = {"prometheus", "exporters", "diagnosis", "grafana"}
"""Services that traces do not need."""
MAX_DIFFERENCE = 0.05
"""Largest relative difference of the totals of one call."""
MIN_STATEMENTS = 300
"""A validation without any cache sends more statements than this."""
TIMEOUT_SECONDS = 60


@pytest.fixture(scope="module")
def uncached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose Keystone caches nothing, not even within a request."""
    folder = tmp_path_factory.mktemp("uncached")
    services = [one for one in select_services(()) if one.name not in OF_METRICS]
    stack = Stack(
        folder, Tools.load(), UNCACHED, initial_data=SAMPLE_CLOUD, services=services
    )
    with stack:
        yield stack


@pytest.fixture(scope="module")
def sent(uncached: Stack) -> SentCall:
    """The signed call, which all sources record."""
    return keystone_access.find_keystone(uncached, None, None, {}).send("validate")


@pytest.fixture(scope="module")
def by_osprofiler(uncached: Stack, sent: SentCall) -> Explanation:
    """The explanation of the trace in Redis."""
    return explained(keystone_access.trace_locations(uncached, {})[0], sent)


@pytest.fixture(scope="module")
def by_opentelemetry(uncached: Stack, sent: SentCall) -> Explanation:
    """The explanation of the trace in the Collector's file."""
    return explained(str(traces_file(uncached.folder)), sent)


def explained(location: str, sent: SentCall) -> Explanation:
    """Wait until the trace is complete, and explain it."""
    return analysis.explain_trace(
        sources.read_complete(location, sent.trace_id, TIMEOUT_SECONDS)
    )


def test_totals_of_three_sources_agree(
    sent: SentCall, by_osprofiler: Explanation, by_opentelemetry: Explanation
) -> None:
    """OSProfiler's categories are not compared: its statements include ORM time."""
    header = parse_server_timing(sent.exchange.server_timing)
    by_header = analysis.explain_server_timing(sent.exchange.call, header)
    explanations = (by_osprofiler, by_opentelemetry, by_header)
    totals = [found.total_seconds for found in explanations]

    assert max(totals) == pytest.approx(min(totals), rel=MAX_DIFFERENCE)
    assert max(totals) < sent.exchange.total_seconds
    expected = pytest.approx(by_header.categories, abs=MAX_DIFFERENCE * max(totals))
    assert by_opentelemetry.categories == expected


def test_sources_have_the_same_statements(
    sent: SentCall, by_osprofiler: Explanation, by_opentelemetry: Explanation
) -> None:
    counted = parse_server_timing(sent.exchange.server_timing).counts["sql_statements"]
    classes = [
        {one.statement_class.id: one.count for one in found.statements}
        for found in (by_osprofiler, by_opentelemetry)
    ]

    assert classes[0] == classes[1]
    assert sum(classes[0].values()) == counted > MIN_STATEMENTS


@pytest.mark.parametrize("name", TRACE_STORES)
def test_trace_stores_return_the_same_trace(
    uncached: Stack, sent: SentCall, by_opentelemetry: Explanation, name: str
) -> None:
    """The stack starts the stores and lists their addresses."""
    if not is_installed(name):
        pytest.skip(f"no `{name}` on the PATH")
    locations = keystone_access.trace_locations(uncached, {})
    (location,) = (one for one in locations if one.startswith(f"{name}+http://"))
    found = explained(location, sent)

    assert found.total_seconds == pytest.approx(by_opentelemetry.total_seconds)
    assert found.cells == pytest.approx(by_opentelemetry.cells)
    assert found.statements == by_opentelemetry.statements
