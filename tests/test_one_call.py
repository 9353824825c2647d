"""One validation without a cache, explained from every place that has it."""

from collections.abc import Iterator

import pytest

from keylag.demo import CLOUD
from keylag.server_timing import parse
from keylag.services import chosen, is_found
from keylag.services.otel_collector import KEEPERS, traces_file
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag.trace import analysis, keystone, sources
from keylag.trace.calls import Sent
from keylag.trace.explanation import Explanation

pytestmark = pytest.mark.stack

UNCACHED = StackOptions(processes=1, environment={"OS_CACHE__ENABLED": "false"})
OF_METRICS = {"prometheus", "exporters", "grafana"}
"""Services that traces need not."""
APART = 0.05
"""How far totals of one call may be apart, as a share."""
MANY = 300
"""A validation sends more statements than that where nothing is kept at all."""
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def uncached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose Keystone caches nothing, not even within a request."""
    folder = tmp_path_factory.mktemp("uncached")
    services = [one for one in chosen(()) if one.name not in OF_METRICS]
    stack = Stack(folder, Tools.load(), UNCACHED, prepared=CLOUD, services=services)
    with stack:
        yield stack


@pytest.fixture(scope="module")
def sent(uncached: Stack) -> Sent:
    """The call: signed, so that each who can writes it down."""
    return keystone.found(uncached, None, None, {}).send("validate")


@pytest.fixture(scope="module")
def by_osprofiler(uncached: Stack, sent: Sent) -> Explanation:
    """What OSProfiler's driver left in Redis."""
    return explained(keystone.places_of(uncached, {})[0], sent)


@pytest.fixture(scope="module")
def by_opentelemetry(uncached: Stack, sent: Sent) -> Explanation:
    """What the Collector's file exporter wrote."""
    return explained(str(traces_file(uncached.folder)), sent)


def explained(place: str, sent: Sent) -> Explanation:
    """Explain the call from a place, once all of its trace has come there."""
    return analysis.of_trace(sources.read_whole(place, sent.trace_id, PATIENCE_SECONDS))


def test_three_totals_agree(
    sent: Sent, by_osprofiler: Explanation, by_opentelemetry: Explanation
) -> None:
    """All are of the same stretch of time; the header's ends as the answer begins.

    So do the parts, but for OSProfiler's points of statements, which hold some of
    the ORM's time.
    """
    header = parse(sent.exchange.server_timing)
    by_header = analysis.of_server_timing(sent.exchange.call, header)
    told = (by_osprofiler, by_opentelemetry, by_header)
    totals = [found.total_seconds for found in told]

    assert max(totals) == pytest.approx(min(totals), rel=APART)
    assert max(totals) < sent.exchange.total_seconds
    near = pytest.approx(by_header.categories, abs=APART * max(totals))
    assert by_opentelemetry.categories == near


def test_all_tell_the_same_statements(
    sent: Sent, by_osprofiler: Explanation, by_opentelemetry: Explanation
) -> None:
    """None is lost of so many, and a class has the same id in each."""
    counted = parse(sent.exchange.server_timing).counts["sql_statements"]
    classes = [
        {one.of.id: one.count for one in found.statements}
        for found in (by_osprofiler, by_opentelemetry)
    ]

    assert classes[0] == classes[1]
    assert sum(classes[0].values()) == counted > MANY


@pytest.mark.parametrize("name", KEEPERS)
def test_the_real_keepers_of_traces_tell_it_too(
    uncached: Stack, sent: Sent, by_opentelemetry: Explanation, name: str
) -> None:
    """The program was started by the stack, and got from the Collector what a file did.

    It is the stack that tells where.
    """
    if not is_found(name):
        pytest.skip(f"no `{name}` on the PATH")
    places = keystone.places_of(uncached, {})
    (place,) = (one for one in places if one.startswith(f"{name}+http://"))
    found = explained(place, sent)

    assert found.total_seconds == pytest.approx(by_opentelemetry.total_seconds)
    assert found.cells == pytest.approx(by_opentelemetry.cells)
    assert found.statements == by_opentelemetry.statements
