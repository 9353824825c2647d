"""The number of series is independent of the number of made-up requests."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import keystone_site
import pytest
from hostile_requests import AUTH_METHODS, LENGTHS, METHODS, HostileRequests
from keystone_client import Keystone, environ_of, password
from keystone_site import Site

from keylag_otel import counters, request_aggregator

SEED = 16
FEW = 1_000
MANY = 100_000
#: Hostile requests before the first count, for failures that no list has.
WARM_UP_SEED, WARM_UP = 17, 2_000
#: What may be new after the warm-up, whatever the number of requests.
ROOM = 10
CELLS_OF_ROW = 15
BRACKETS = str.maketrans("<>:", "---")

#: Methods: each alone, an unknown one, and each kind of combination.
COMBINED = ("password+totp", "token+totp", "password+token")
NAMED = (
    *([name] for name in AUTH_METHODS),
    *(sorted(names.split("+")) for names in COMBINED),
    ["made-up", "password"],
    ["oauth1", "totp", "x509"],
    [],
)
PATHS = (
    *("/", "/v3", "/v3/", "//v3", "/v3/auth/tokens", "/v3/auth/tokens/"),
    *("/v3/users", "/v3/users/nobody", "/v3/nowhere", "/v2.0", "/healthcheck"),
    *("/v3/OS-FEDERATION/identity_providers/idp/protocols/p/auth", "/v3/ec2tokens"),
    "/v3/auth/OS-FEDERATION/identity_providers/idp/protocols/p/websso",
    "/v3/auth/OS-FEDERATION/websso/p",
)
#: No user, an unknown user, and bodies with a wrong length.
SAID = (
    {},
    {"HTTP_X_AUTH_TOKEN": "no"},
    *({"CONTENT_LENGTH": length} for length in LENGTHS),
)


def reader_without_limit() -> Any:
    """Return a reader of all series, without the SDK's limit."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.metrics.view import View

    from keylag_otel import telemetry

    reader = InMemoryMetricReader()
    try:
        views = [View(instrument_name="*", aggregation_cardinality_limit=10**6)]
    except TypeError:  # before 1.45 the SDK had no limit
        views = []
    telemetry.use_provider(MeterProvider([reader], views=views))
    return reader


def series(reader: Any) -> dict[str, int]:
    """Return how many series each exported metric has."""
    return {
        metric.name: len(metric.data.data_points)
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def kept(reader: Any) -> dict[str, int]:
    """Return the sizes of all state that a client might multiply."""
    rows = request_aggregator.AGGREGATOR.aggregates()
    sizes = Counter(key[0] for key in counters._keys)
    return {
        **series(reader),
        **{f"counters of {name}": number for name, number in sizes.items()},
        "rows": len(rows),
        "overflow": sum("otel.metric.overflow" in attributes for attributes, _ in rows),
    }


def send(application: Any, environ: dict[str, Any]) -> int:
    """Send a request as a WSGI server does; return the status."""
    started: list[Any] = []
    try:
        parts = application(environ, lambda *args: started.append(args))
        b"".join(parts)
        getattr(parts, "close", str)()
    except Exception:  # noqa: BLE001 - as a WSGI server does
        return 500
    return int(started[-1][0][:3])


def meet_each_kind(keystone: Keystone) -> None:
    """Log in with each method, and send each HTTP method to each route."""
    token = keystone.issue(password("admin")).token
    keystone.validate(token)
    for names in NAMED:
        identity = {"methods": names, **{name: {} for name in names}}
        keystone.issue({"identity": identity})
    keystone.issue(password("admin", "wrong"))
    for method, path, said in product(METHODS, PATHS, SAID):
        ask(keystone, method, path, said)
    for rule in keystone.application.url_map.iter_rules():
        for method in (*rule.methods, "PROPFIND"):
            ask(keystone, method, rule.rule.translate(BRACKETS), {})


def ask(keystone: Keystone, method: str, path: str, said: dict[str, str]) -> None:
    made = {"REQUEST_METHOD": method, "PATH_INFO": path, **said}
    send(keystone.application, {**environ_of("GET", "/", None, {}), **made})


def throw(keystone: Keystone, number: int) -> dict[str, Any]:
    """Send each kind of request, then a number of hostile ones."""
    rules = [rule.rule for rule in keystone.application.url_map.iter_rules()]
    reader = reader_without_limit()
    meet_each_kind(keystone)
    # The recorded breakdowns are unused from here on, and would pile up.
    del request_aggregator.AGGREGATOR.add
    for environ in HostileRequests(WARM_UP_SEED, rules).requests(WARM_UP):
        send(keystone.application, environ)
    before = kept(reader)
    answers: Counter[int] = Counter()
    for environ in HostileRequests(SEED, rules).requests(number):
        answers[send(keystone.application, environ)] += 1
    return {"before": before, "after": kept(reader), "answers": answers}


def grown(thrown: dict[str, Any]) -> dict[str, int]:
    """Return by how much each size has grown."""
    before, after = thrown["before"], thrown["after"]
    return {name: size - before[name] for name, size in after.items()}


@pytest.fixture(
    scope="module", params=[FEW, pytest.param(MANY, marks=pytest.mark.matrix)]
)
def thrown(request, processes, prepared, tmp_path_factory) -> dict[str, Any]:
    site = Site(processes, prepared, tmp_path_factory.mktemp("hostile"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keystone_site, "_PATIENCE_SECONDS", 3 * 3600)
        return site.run(throw, request.param)


def test_hostile_requests_were_refused_in_many_ways(thrown) -> None:
    answers = thrown["answers"]

    assert {200, 400, 401, 404, 405, 413} <= set(answers)
    assert sum(answers.values()) - answers[200] > FEW / 2


def test_hostile_requests_create_no_series(thrown) -> None:
    growth = grown(thrown)

    # A status that Keystone had not answered to a method before makes a row, and its
    # cells are those of a request that is refused.
    assert growth.pop("keystone.request.phase.time") <= CELLS_OF_ROW * ROOM
    assert {name: size for name, size in growth.items() if size > ROOM} == {}


def test_hostile_requests_create_less_than_200_aggregates(thrown) -> None:
    assert thrown["after"]["rows"] < 200
    assert thrown["after"]["counters of auth_failures"] <= 60
    assert thrown["after"]["overflow"] == 0
