"""Explanations in the terminal and as an HTML page."""

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
def explanation() -> Explanation:
    """The sample trace with 600 spans of one statement."""
    groups = otlp()["resourceSpans"]
    (span,) = [s for s in groups[1]["scopeSpans"][0]["spans"] if s["spanId"] == "b1"]
    more = [{**span, "spanId": f"x{n}"} for n in range(599)]
    end = {"endTimeUnixNano": str(int(span["startTimeUnixNano"]) + 1)}
    more.append({**span, **end, "spanId": "t", "name": "tiny", "attributes": []})
    groups.append({"scopeSpans": [{"spans": more}]})
    return explain_trace(parse_resource_spans(groups, OTEL_ID, "here"))


def printed(explanation: Explanation, width: int = 100) -> str:
    """Return the terminal output."""
    stream = StringIO()
    terminal.render_explanation(explanation, Console(file=stream, width=width))
    return stream.getvalue()


def test_similar_siblings_are_collapsed(explanation: Explanation) -> None:
    shown = [(row.depth, row.label, row.count) for row in span_rows(explanation)]

    assert shown == [
        (0, "keystone GET /v3/auth/tokens", 1),
        (1, "SELECT id FROM project WHERE id = ?", 600),
        (1, "tiny", 1),
        (1, "get cache", 1),
        (1, "roles orm", 1),
        (2, "SELECT role.id FROM role JOIN a ON … WHERE role.id IN (?…)", 1),
        (2, "SELECT id FROM project WHERE id = ?", 1),
    ]


def test_terminal_output_is_complete_and_short(explanation: Explanation) -> None:
    output = printed(explanation)

    for text in ("GET /v3/auth/tokens: 100.00 ms", "602 statements", "██", "backend"):
        assert text in output
    assert re.search(r"601 +\d+\.\d+ +4\.00 +SELECT id FROM project", output)
    assert len(output.splitlines()) < 45
    assert "1 rows below 1.0 % each are hidden" in output
    assert CANARY not in output


def traced(*functions: str) -> Explanation:
    """Return the explanation of nested function spans."""
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
    explanation = traced(*DEEP)

    assert [row.label for row in span_rows(explanation)][-5:-1] == [
        "Flask.dispatch_request",
        "Manager.check_revocation",
        "password_hashing.check_password",
        "get_or_create.get_value",
    ]
    assert "check_password: 1.00 ms" in html.render_html(explanation)


def test_span_label_without_function_is_its_step() -> None:
    steps = [{"keystone.operation": "validate"}, {"keystone.phase": "other"}]
    nodes = [
        RawSpan(str(n), "", "other", n, n + 1, attributes)
        for n, attributes in enumerate(steps)
    ]
    explanation = explain_trace(build_trace(nodes, "t", "here"))

    assert [row.label for row in span_rows(explanation)] == [
        "validate",
        "Keystone's own Python",
    ]


def test_deep_tree_fits_80_columns() -> None:
    output = printed(traced(*DEEP), width=80)

    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    assert "AuthContextMiddleware.process_request" in output
    assert "get_or_create.get_value" in output
    assert re.search(r"_TransactionContextManager\._transac\w+\s+\w*on_scope", output)


def test_totals_of_all_sources_are_shown(explanation: Explanation) -> None:
    with_totals = replace(
        explanation, totals_by_source={"Server-Timing": 0.0995, "the client": 0.1021}
    )

    output = printed(with_totals)
    assert re.search(r"Server-Timing +99\.50\nthe client +102\.10", output)
    assert "Server-Timing 99.50, the client 102.10." in html.render_html(with_totals)
    assert "same call" not in printed(explanation) + html.render_html(explanation)


def test_client_view_shows_parts_and_advice() -> None:
    stream = StringIO()
    exchange = HttpExchange(
        "GET", "/v3/auth/tokens", 200, "", 0.25, {"wait": 0.2, "tls": 0.04}
    )
    terminal.render_client_view(
        exchange, "Ask for more.", Console(file=stream, width=100)
    )

    output = stream.getvalue()
    assert "GET /v3/auth/tokens: 250.00 ms at the client" in output
    assert re.search(r"TLS handshake +40\.00 +16\.0 %", output)
    assert "Ask for more." in output


class Tags(HTMLParser):
    """Counts the elements of a page, and collects its references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.count: dict[str, int] = {}
        self.references: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count an element."""
        self.count[tag] = self.count.get(tag, 0) + 1
        self.references += [v for name, v in attrs if name in {"src", "href"}]


def test_page_is_self_contained_and_has_every_span(explanation: Explanation) -> None:
    text = html.render_html(explanation)
    tags = Tags(text)

    assert tags.count["rect"] == 606
    assert tags.references == []
    assert text.count("from role join a on") < 4
    assert CANARY not in text
