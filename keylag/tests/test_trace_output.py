"""An explanation in the terminal and as a page."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console
from sample_trace import CANARY, OTEL_ID, otlp

from keylag.trace import html, terminal
from keylag.trace.analysis import explain_trace
from keylag.trace.explanation import Explanation
from keylag.trace.http_exchange import HttpExchange
from keylag.trace.model import RawSpan, build_trace
from keylag.trace.otlp import parse_resource_spans
from keylag.trace.span_rows import span_rows


@pytest.fixture(scope="module")
def found() -> Explanation:
    """A trace of which one statement was sent 600 times."""
    groups = otlp()["resourceSpans"]
    (span,) = [s for s in groups[1]["scopeSpans"][0]["spans"] if s["spanId"] == "b1"]
    more = [{**span, "spanId": f"x{n}"} for n in range(599)]
    end = {"endTimeUnixNano": str(int(span["startTimeUnixNano"]) + 1)}
    more.append({**span, **end, "spanId": "t", "name": "tiny", "attributes": []})
    groups.append({"scopeSpans": [{"spans": more}]})
    return explain_trace(parse_resource_spans(groups, OTEL_ID, "here"))


def printed(found: Explanation, width: int = 100) -> str:
    """Return what the terminal shows."""
    stream = StringIO()
    terminal.render_explanation(found, Console(file=stream, width=width))
    return stream.getvalue()


def test_similar_siblings_are_collapsed(found: Explanation) -> None:
    shown = [(row.depth, row.label, row.count) for row in span_rows(found)]

    assert shown == [
        (0, "keystone GET /v3/auth/tokens", 1),
        (1, "select … from project where project.id = ?", 600),
        (1, "tiny", 1),
        (1, "get cache", 1),
        (1, "roles orm", 1),
        (2, "select … from role join a on a.r = role.id where role.id in(?+)", 1),
        (2, "select … from project where project.id = ?", 1),
    ]


def test_terminal_output_is_complete_and_short(found: Explanation) -> None:
    said = printed(found)

    for text in ("GET /v3/auth/tokens: 100.00 ms", "602 statements", "██", "backend"):
        assert text in said
    assert re.search(r"601 +\d+\.\d+ +4\.00 +select … from project", said)
    assert len(said.splitlines()) < 45
    assert "1 rows below 1.0 % each are hidden" in said
    assert CANARY not in said


def traced(*functions: str) -> Explanation:
    """Return a trace of functions, each called by the one before it."""
    nodes = [
        RawSpan(
            id=str(depth),
            parent=str(depth - 1),
            name="other",
            start=depth,
            end=1_000_000 - depth,
            attributes={"code.function.name": function},
        )
        for depth, function in enumerate(functions)
    ]
    return explain_trace(build_trace(nodes, "t", "here"))


DEEP = (
    "keystone.server.middleware.auth_context.AuthContextMiddleware.process_request",
    *["flask.app.Flask.dispatch_request"] * 10,
    "keystone.token.provider.Manager.check_revocation",
    "keystone.common.password_hashing.check_password",
    "dogpile.cache.region.CacheRegion.get_or_create.<locals>.get_value",
    "oslo_db.sqlalchemy.enginefacade._TransactionContextManager._transaction_scope",
)


def test_span_label_is_its_function() -> None:
    found = traced(*DEEP)

    assert [row.label for row in span_rows(found)][-5:-1] == [
        "Flask.dispatch_request",
        "Manager.check_revocation",
        "password_hashing.check_password",
        "get_or_create.get_value",
    ]
    assert "check_password: 1.00 ms" in html.render_html(found)


def test_span_label_without_function_is_its_step() -> None:
    steps = [{"keystone.operation": "validate"}, {"keystone.phase": "other"}]
    nodes = [
        RawSpan(str(n), "", "other", n, n + 1, attributes)
        for n, attributes in enumerate(steps)
    ]
    found = explain_trace(build_trace(nodes, "t", "here"))

    assert [row.label for row in span_rows(found)] == [
        "validate",
        "Keystone's own Python",
    ]


def test_deep_tree_fits_80_columns() -> None:
    said = printed(traced(*DEEP), width=80)

    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said
    assert "AuthContextMiddleware.process_request" in said
    assert "get_or_create.get_value" in said
    assert re.search(r"_TransactionContextManager\._transac\w+\s+\w*on_scope", said)


def test_totals_of_all_sources_are_shown(found: Explanation) -> None:
    several = replace(
        found, totals_by_source={"Server-Timing": 0.0995, "the client": 0.1021}
    )

    said = printed(several)
    assert re.search(r"Server-Timing +99\.50\nthe client +102\.10", said)
    assert "Server-Timing 99.50, the client 102.10." in html.render_html(several)
    assert "measured" not in printed(found) + html.render_html(found)


def test_client_view_shows_parts_and_advice() -> None:
    stream = StringIO()
    seen = HttpExchange(
        "GET", "/v3/auth/tokens", 200, "", 0.25, {"wait": 0.2, "tls": 0.04}
    )
    terminal.render_client_view(seen, "Ask for more.", Console(file=stream, width=100))

    said = stream.getvalue()
    assert "GET /v3/auth/tokens: 250.00 ms at the client" in said
    assert re.search(r"TLS handshake +40\.00 +16\.0 %", said)
    assert "Ask for more." in said


class Tags(HTMLParser):
    """Counts a page's elements, and keeps what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.count: dict[str, int] = {}
        self.references: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count."""
        self.count[tag] = self.count.get(tag, 0) + 1
        self.references += [v for name, v in attrs if name in {"src", "href"}]


def test_page_is_self_contained_and_has_every_span(found: Explanation) -> None:
    text = html.render_html(found)
    tags = Tags(text)

    assert tags.count["rect"] == 606
    assert tags.references == []
    assert text.count("from role join a on") < 4
    assert CANARY not in text
