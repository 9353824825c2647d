"""The tree that every source is read into."""

import pytest

from keylag.trace.model import RawSpan, Span, TraceError, build_trace, filter_attributes


def node(name: str, parent: str, start: int, end: int, **more: object) -> RawSpan:
    """Return a node that is its own id; times in seconds."""
    return RawSpan(name, parent, name, start * 10**9, end * 10**9, more)


def shape(span: Span) -> tuple[str, list[object]]:
    """Return a span's name and those of what is below."""
    return span.name, [shape(child) for child in span.children]


def test_tree_is_built_from_spans_in_any_order() -> None:
    nodes = [
        node("second", "root", 5, 6),
        node("below", "first", 2, 3),
        node("first", "root", 1, 4),
        node("root", "elsewhere", 0, 10),
        node("late", "lost", 11, 12),
    ]
    trace = build_trace(nodes, "t", "here")

    assert [shape(root) for root in trace.spans] == [
        ("root", [("first", [("below", [])]), ("second", [])]),
        ("late", []),
    ]


def test_times_start_at_zero_and_never_run_backwards() -> None:
    trace = build_trace(
        [node("a", "", 1000, 1003), node("b", "a", 1002, 1001)], "t", "here"
    )

    (root,) = trace.spans
    assert (root.start, root.end) == pytest.approx((0, 3))
    assert (root.children[0].start, root.children[0].end) == pytest.approx((2, 2))


@pytest.mark.parametrize(
    ("children", "left"),
    [
        ([], 10),
        ([(1, 3), (5, 6)], 7),
        ([(1, 5), (2, 4)], 6),
        ([(1, 5), (3, 8)], 3),
        ([(8, 14)], 8),
    ],
)
def test_self_time_excludes_children(
    children: list[tuple[int, int]], left: int
) -> None:
    below = [node(f"{n}", "root", *times) for n, times in enumerate(children)]
    (root,) = build_trace([node("root", "", 0, 10), *below], "t", "here").spans

    assert root.self_seconds == pytest.approx(left)


def test_trace_without_spans_is_an_error() -> None:
    with pytest.raises(TraceError, match=r"no trace t in here"):
        build_trace([], "t", "here")


@pytest.mark.parametrize(
    ("attributes", "left"),
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
    attributes: dict[str, object], left: dict[str, str]
) -> None:
    assert filter_attributes(attributes) == left


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
    (root,) = build_trace([node("a", "", 0, 1, **attributes)], "t", "here").spans

    assert root.cell == cell
