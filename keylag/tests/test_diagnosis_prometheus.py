"""Queries over a range of times."""

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar
from urllib.parse import parse_qs

import pytest

from keylag.diagnosis.prometheus import Prometheus, PrometheusError

TIMES = [1000.1 + 7.3 * number for number in range(41)]


class Handler(BaseHTTPRequestHandler):
    """Answers with the time itself; series "late" begins in the middle."""

    authorizations: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.authorizations.append(self.headers["Authorization"])
        length = int(self.headers["Content-Length"])
        asked = {k: v[0] for k, v in parse_qs(self.rfile.read(length).decode()).items()}
        if asked["query"] == "wrong":
            self.answer({"status": "error", "error": "parse error"})
            return
        if asked["query"] == "protected":
            self.send_error(HTTPStatus.UNAUTHORIZED)
            return
        start, end, step = (float(asked[one]) for one in ("start", "end", "step"))
        times = [start + n * step for n in range(int((end - start) // step) + 1)]
        series = [
            ({"name": "all"}, times),
            ({"name": "late"}, times[len(times) // 2 :]),
        ]
        result = [
            {"metric": labels, "values": [[round(at, 3), str(at)] for at in those]}
            for labels, those in series
        ]
        self.answer({"status": "success", "data": {"result": result}})

    def answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Prometheus(f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()


def test_each_time_has_its_values(prometheus: Prometheus) -> None:
    found = prometheus.query_range("up", TIMES)

    assert list(found) == TIMES
    for number, (at, samples) in enumerate(found.items()):
        assert samples[0].value == pytest.approx(at, abs=0.1)
        names = [one.labels["name"] for one in samples]
        assert names == (["all", "late"] if number >= len(TIMES) // 2 else ["all"])


def test_queries_by_name(prometheus: Prometheus) -> None:
    found = prometheus.query_range_all({"a": "up", "b": "up"}, TIMES)

    assert found["a"] == found["b"] == prometheus.query_range("up", TIMES)


def test_refused_query_is_an_error(prometheus: Prometheus) -> None:
    with pytest.raises(PrometheusError, match="parse error"):
        prometheus.query_range_all({"a": "wrong"}, TIMES)


def test_password_is_sent_and_not_shown(prometheus: Prometheus) -> None:
    Handler.authorizations.clear()
    with_password = Prometheus(prometheus.url.replace("//", "//me:canary@"))

    with pytest.raises(PrometheusError, match="401") as refused:
        with_password.query_range("protected", TIMES)

    assert Handler.authorizations == [f"Basic {b64encode(b'me:canary').decode()}"]
    assert "canary" not in str(refused.value)


def test_password_is_not_shown_if_nothing_answers() -> None:
    with pytest.raises(PrometheusError, match=r"at http://127\.0\.0\.1:9: ") as failed:
        Prometheus("http://me:canary@127.0.0.1:9").query("up", 0)

    assert "canary" not in str(failed.value)
