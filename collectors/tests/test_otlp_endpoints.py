"""For each kind of endpoint, responses are equal and as fast, and workers end.

A worker's own end, the interpreter's and all that Keystone has loaded, takes as
long as it takes: how long ours may take is measured without a Keystone.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import keystone_stub
import pytest
from keystone_client import password
from otlp_endpoints import KINDS, bad, healthy
from wsgi_servers import Response, Server, serving, serving_variants, until, uwsgi

#: Independent of the release of Keystone.
pytestmark = [pytest.mark.newest, pytest.mark.matrix]

#: What differs in every response of any server.
OF_THE_MOMENT = re.compile(
    rb'"(issued_at|expires_at)": "[^"]*"|"audit_ids": \[[^]]*\]|"self": "http://[^"]*"'
)
HEADERS_OF_THE_MOMENT = {"date", "x-openstack-request-id", "x-subject-token"}

#: Much shorter than in production, so that exports run during every request.
EAGER = {
    "OTEL_METRIC_EXPORT_INTERVAL": "20",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "30",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_BSP_SCHEDULE_DELAY": "20",
}
NONE = {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}
LOG_IN = {"auth": password("admin")}
PATHS = ("/v3", "/v3/auth/tokens", "/v3/auth/catalog", "/v3/projects", "/v3/nothing")
ROUNDS = 40


@pytest.fixture(scope="module")
def servers(
    configuration: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """One Keystone for each kind of endpoint, and one that exports nothing."""
    folder = tmp_path_factory.mktemp("servers")
    common = {"OS_KEYSTONE_CONFIG_FILES": str(configuration), **EAGER}
    with ExitStack() as stack:
        variants = {
            kind: {"OTEL_EXPORTER_OTLP_ENDPOINT": stack.enter_context(bad(kind))}
            for kind in KINDS
        }
        variants["nothing"] = NONE
        yield stack.enter_context(serving_variants(folder, variants, common))


def comparable(answer: Response, server: Server) -> tuple[Any, ...]:
    """All responses without ids and times."""
    headers = [
        (name, value.replace(server.address, "server"))
        for name, value in answer.headers
        if name.lower() not in HEADERS_OF_THE_MOMENT
    ]
    body = answer.body.replace(server.address.encode(), b"server")
    if "content-length" in dict(answer.headers):
        headers = [each for each in headers if each[0].lower() != "content-length"]
    return answer.status, headers, OF_THE_MOMENT.sub(b"", body)


def answers(server: Server, token: str) -> list[tuple[Any, ...]]:
    who = {"X_Auth_Token": token, "X_Subject_Token": token}
    issued = server.request("POST", "/v3/auth/tokens", LOG_IN)
    asked = [server.request("GET", path, **who) for path in PATHS]
    return [comparable(each, server) for each in (issued, *asked)]


@pytest.mark.parametrize("kind", KINDS)
def test_responses_are_identical_for_each_endpoint(servers, kind) -> None:
    bare = servers["nothing"]
    issued = bare.request("POST", "/v3/auth/tokens", LOG_IN)
    token = issued.header("x-subject-token")

    assert json.loads(issued.body)["token"]["user"]["name"] == "admin"
    assert answers(servers[kind], token) == answers(bare, token)


def ratios(servers: dict[str, Server]) -> dict[str, float]:
    """Return how much longer each takes than the one without exports.

    Medians over rounds, in each of which every server has its turn.
    """
    spent: dict[str, list[float]] = {name: [] for name in servers}
    order = list(servers)
    for _ in range(ROUNDS):
        random.shuffle(order)
        for name in order:
            started = time.perf_counter()
            servers[name].request("GET", "/v3")
            spent[name].append(time.perf_counter() - started)
    bare = statistics.median(spent.pop("nothing"))
    return {name: statistics.median(each) / bare for name, each in spent.items()}


def test_responses_are_as_fast_for_each_endpoint(servers) -> None:
    slowed = set(KINDS)

    # A busy machine slows some of them down; an endpoint would slow down all.
    for _ in range(4):
        slowed &= {kind for kind, ratio in ratios(servers).items() if ratio > 1.5}
        if not slowed:
            break

    assert slowed == set()


def seconds_to_end(folder: Path, environment: dict[str, str]) -> float:
    """Return how long workers of a stub take to end after a signal."""
    variables = {"PYTHONPATH": str(keystone_stub.write(folder)), **EAGER, **environment}
    with serving(uwsgi(), folder / "server.log", variables) as server:
        server.request_of_each(10)
        return server.stop()


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The time that workers without exports take to end."""
    return seconds_to_end(tmp_path_factory.mktemp("usual"), NONE)


@pytest.mark.parametrize("kind", KINDS)
def test_worker_stops_within_a_second_for_each_endpoint(tmp_path, kind, usual) -> None:
    with bad(kind) as url:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": url}

        # A busy machine delays some of them; an endpoint would delay all.
        assert any(seconds_to_end(tmp_path, variables) < usual + 1 for _ in range(3))


def test_hanging_endpoint_logs_few_messages(tmp_path) -> None:
    path = str(keystone_stub.write(tmp_path))
    with bad("overloaded") as url:
        variables = {"PYTHONPATH": path, "OTEL_EXPORTER_OTLP_ENDPOINT": url, **EAGER}
        with serving(uwsgi(), tmp_path / "server.log", variables) as server:
            server.request_often(20)
            server.stop()
            said = server.tail()

    assert "exporting metrics batch" in said
    assert said.count("exporting metrics batch") <= 2, said


def test_a_healthy_endpoint_gets_exports_while_the_worker_lives(tmp_path) -> None:
    path = str(keystone_stub.write(tmp_path))
    with healthy() as sink:
        variables = {
            "PYTHONPATH": path,
            "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url,
            **EAGER,
        }
        with serving(uwsgi(), tmp_path / "server.log", variables) as server:
            server.request_often(20)
            until(lambda: sink.requests == server.sent, "every request to be counted")
