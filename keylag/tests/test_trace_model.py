"""The tree of spans."""

import pytest

from keylag.trace.model import RawSpan, Span, TraceError, build_trace, filter_attributes


def raw_span(name: str, parent: str, start: int, end: int, **more: object) -> RawSpan:
    """Return a raw span whose id is its name; times in seconds."""
    return RawSpan(name, parent, name, start * 10**9, end * 10**9, more)


def shape(span: Span) -> tuple[str, list[object]]:
    """Return the names of a span and its descendants."""
    return span.name, [shape(child) for child in span.children]


def test_tree_is_built_from_spans_in_any_order() -> None:
    raw_spans = [
        raw_span("second", "root", 5, 6),
        raw_span("children_spans", "first", 2, 3),
        raw_span("first", "root", 1, 4),
        raw_span("root", "elsewhere", 0, 10),
        raw_span("late", "lost", 11, 12),
    ]
    trace = build_trace(raw_spans, "t", "here")

    assert [shape(root) for root in trace.spans] == [
        ("root", [("first", [("children_spans", [])]), ("second", [])]),
        ("late", []),
    ]


def test_times_start_at_zero_and_never_run_backwards() -> None:
    trace = build_trace(
        [raw_span("a", "", 1000, 1003), raw_span("b", "a", 1002, 1001)], "t", "here"
    )

    (root,) = trace.spans
    assert (root.start, root.end) == pytest.approx((0, 3))
    assert (root.children[0].start, root.children[0].end) == pytest.approx((2, 2))


@pytest.mark.parametrize(
    ("children", "remaining"),
    [
        ([], 10),
        ([(1, 3), (5, 6)], 7),
        ([(1, 5), (2, 4)], 6),
        ([(1, 5), (3, 8)], 3),
        ([(8, 14)], 8),
    ],
)
def test_self_time_excludes_children(
    children: list[tuple[int, int]], remaining: int
) -> None:
    children_spans = [
        raw_span(f"{n}", "root", *times) for n, times in enumerate(children)
    ]
    (root,) = build_trace(
        [raw_span("root", "", 0, 10), *children_spans], "t", "here"
    ).spans

    assert root.self_seconds == pytest.approx(remaining)


def test_trace_without_spans_is_an_error() -> None:
    with pytest.raises(TraceError, match=r"no trace t in here"):
        build_trace([], "t", "here")


@pytest.mark.parametrize(
    ("attributes", "remaining"),
    [
        ({"db.params.id": "canary", "enduser.id": "canary"}, {}),
        ({"db.statement": "SELECT 1"}, {"db.query.text": "SELECT 1"}),
        (
            {"request.path": "/v3/users/4fe9c0d1e2/projects"},
            {"http.route": "/v3/users/{id}/projects"},
        ),
        (
            {"http.route": "/v3/OS-OAUTH1/{user_id}"},
            {"http.route": "/v3/OS-OAUTH1/{user_id}"},
        ),
        ({"keystone.phase": "sql"}, {"keystone.phase": "sql"}),
    ],
)
def test_filter_drops_unknown_attributes_and_ids(
    attributes: dict[str, object], remaining: dict[str, str]
) -> None:
    assert filter_attributes(attributes) == remaining


@pytest.mark.parametrize(
    ("attributes", "cell"),
    [
        ({}, ("other", "other")),
        ({"db.query.text": "SELECT 1"}, ("sql", "other")),
        ({"keystone.phase": "orm", "keystone.operation": "roles"}, ("orm", "roles")),
    ],
)
def test_cell_comes_from_attributes_or_statement(
    attributes: dict[str, object], cell: tuple[str, str]
) -> None:
    (root,) = build_trace([raw_span("a", "", 0, 1, **attributes)], "t", "here").spans

    assert root.cell == cell
