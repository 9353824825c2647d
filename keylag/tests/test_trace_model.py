"""The tree that every source is read into."""

import pytest

from keylag.trace.model import Node, Span, TraceError, grown, kept


def node(name: str, parent: str, start: int, end: int, **more: object) -> Node:
    """Return a node that is its own id; times in seconds."""
    return Node(name, parent, name, start * 10**9, end * 10**9, more)


def shape(span: Span) -> tuple[str, list[object]]:
    """Return a span's name and those of what is below."""
    return span.name, [shape(child) for child in span.children]


def test_a_tree_from_nodes_in_any_order() -> None:
    """Children are in the order they began; who has no parent here is a root."""
    nodes = [
        node("second", "root", 5, 6),
        node("below", "first", 2, 3),
        node("first", "root", 1, 4),
        node("root", "elsewhere", 0, 10),
        node("late", "lost", 11, 12),
    ]
    trace = grown(nodes, "t", "here")

    assert [shape(root) for root in trace.spans] == [
        ("root", [("first", [("below", [])]), ("second", [])]),
        ("late", []),
    ]


def test_times_begin_with_the_trace() -> None:
    """And no span ends before it began."""
    trace = grown([node("a", "", 1000, 1003), node("b", "a", 1002, 1001)], "t", "here")

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
def test_self_time_is_without_children(
    children: list[tuple[int, int]], left: int
) -> None:
    """Those side by side count once, and only while their parent runs."""
    below = [node(f"{n}", "root", *times) for n, times in enumerate(children)]
    (root,) = grown([node("root", "", 0, 10), *below], "t", "here").spans

    assert root.self_seconds == pytest.approx(left)


def test_no_node_is_no_trace() -> None:
    """The message names the trace and the place."""
    with pytest.raises(TraceError, match=r"no trace t in here"):
        grown([], "t", "here")


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
def test_only_what_may_be_shown_is_kept(
    attributes: dict[str, object], left: dict[str, str]
) -> None:
    """By one name, whatever the source calls it."""
    assert kept(attributes) == left


@pytest.mark.parametrize(
    ("attributes", "cell"),
    [
        ({}, ("other", "other")),
        ({"db.query.text": "SELECT 1"}, ("sql", "other")),
        ({"keystone.phase": "orm", "keystone.operation": "roles"}, ("orm", "roles")),
    ],
)
def test_phase_and_operation(
    attributes: dict[str, object], cell: tuple[str, str]
) -> None:
    """A statement is SQL even where nobody says so."""
    (root,) = grown([node("a", "", 0, 1, **attributes)], "t", "here").spans

    assert root.cell == cell
