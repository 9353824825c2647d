"""The time to compute a fingerprint is linear in the statement's length."""

import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keylag_exporters.slow_log import unions
from keylag_exporters.slow_log.fingerprint import fingerprint
from keylag_exporters.slow_log.tables import table_class
from keylag_exporters.slow_log.unions import fold_unions

KB = 10_000
GROWTH = 32
MAX_RATIO = 6 * GROWTH
"""Quadratic time has a ratio of GROWTH * GROWTH."""

WORDS = ["".join(word).encode() for word in itertools.product("abcdefghij", repeat=5)]

# The regular expression of pt-query-digest, which takes at least quadratic time.
REFERENCE_RULE = re.compile(rb"\b(select\s.*?)(?:(\sunion(?:\sall)?)\s\1)+")


def branches(size, text=b"select x from t_%b"):
    """Return a UNION whose branches differ only at their end."""
    count = size // (len(text) + 10)
    return b" union ".join(text % WORDS[n % len(WORDS)] for n in range(count))


def square_free(size):
    """Return a UNION of three kinds of branches in which no group repeats directly."""
    text, rules = "a", {"a": "abc", "b": "ac", "c": "b"}
    while 14 * len(text) < size:
        text = "".join(rules[letter] for letter in text)
    return b" union ".join(b"select " + one.encode() for one in text)


def nested(size):
    """Return a UNION of two branches with many SELECTs that differ at the end."""
    selects = b"select " * (size // 14)
    return selects + b"y union " + selects + b"z"


SHAPES = {
    "union, alike": lambda n: b" union ".join([b"select a from b"] * (n // 22)),
    "union, distinct": branches,
    "union, late difference": lambda n: branches(n, b"select " + b"a," * 100 + b"%b"),
    "union, square-free": square_free,
    "union, nested": nested,
    "union, halves": lambda n: branches(n // 2) + b" union all " + branches(n // 2),
    "in, one list": lambda n: b"select a in (" + b"1," * (n // 2) + b"2)",
    "in, lists": lambda n: b"select a in " + b"(1), " * (n // 5),
    "in, open": lambda n: b"select a in " + b"(" * n,
    "in, space": lambda n: b"in" + b" \v" * (n // 2),
    "values, rows": lambda n: b"insert into t values " + b"(1,'a')," * (n // 8),
    "values, open": lambda n: b"insert into t " + b"values (" * (n // 8),
    "values, empty": lambda n: b"insert into t " + b"values () , " * (n // 11),
    "comments, open": lambda n: b"select " + b"/*" * (n // 2),
    "comments, versions": lambda n: b"select " + b"/*! */" * (n // 6),
    "comments, dashes": lambda n: b"select " + b"-" * n + b"'",
    "comments, hashes": lambda n: b"select " + b"#'" * (n // 2),
    "quotes": lambda n: b"select " + b"'\"" * (n // 2),
    "quotes, open": lambda n: b"select '" + b"a" * n,
    "quotes, escapes": lambda n: b"select '" + b"\\'" * (n // 2),
    "space": lambda n: b"select" + b" " * n + b"1",
    "order, no asc": lambda n: b"select a order by " + b"abc " * (n // 4),
    "order, asc": lambda n: b"select a order by " + b"a asc, " * (n // 7),
    "order, space": lambda n: b"select a order by a" + b"\v" * n + b"as",
    "call": lambda n: b"call" + b" " * (n // 2) + b"a" * (n // 2),
    "toolkit": lambda n: b"/*a.b:" * (n // 6),
    "one word": lambda n: b"a" * n,
}


def seconds(statement, times):
    """Return the least CPU time of several runs."""
    found = []
    for _ in range(times):
        began = time.process_time()
        fingerprint(statement)
        found.append(time.process_time() - began)
    return min(found)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.timeout(60)
@pytest.mark.no_cover  # a tracer would take the time that is limited
def test_time_grows_as_the_statement_does(shape):
    small = max(seconds(shape(KB), 3), 100e-6)

    assert seconds(shape(KB * GROWTH), 1) < MAX_RATIO * small


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name", ["union, distinct", "union, square-free", "values, open"]
)
@pytest.mark.no_cover  # a tracer would take the time that is limited
def test_fingerprint_of_ten_megabytes_takes_less_than_a_minute(name):
    """A quadratic algorithm takes hours."""
    assert seconds(SHAPES[name](1000 * KB), 1) < 60


@pytest.mark.no_cover  # a tracer would take the time that is limited
def test_table_class_of_long_whitespace_is_fast():
    text = b"select a from" + b"\v" * 4900 + b"(user"

    began = time.process_time()
    for _ in range(20):
        assert table_class(text) == "user+password"

    assert time.process_time() - began < 1


PIECES = [
    *(b"select a", b"select b", b"select abc", b"select ", b"(select a", b"x"),
    *(b" union ", b" union all ", b" union", b" union select "),
    *(b"(", b")", b" ", b"\v"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=24).map(b"".join))
@settings(max_examples=1500, deadline=None)
def test_random_unions_fold_like_the_reference_rule(text):
    assert fold_unions(text) == REFERENCE_RULE.sub(rb"\1 /*repeat\2*/", text)


@given(st.lists(st.sampled_from([b"select a", b"select b"]), min_size=2, max_size=30))
@settings(max_examples=500, deadline=None)
def test_groups_of_branches_fold_like_the_reference_rule(group):
    text = b" union ".join(group * 2)

    assert fold_unions(text) == REFERENCE_RULE.sub(rb"\1 /*repeat\2*/", text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        (b"select a union select a", b"select a /*repeat union*/"),
        (b"select a union select a union all select a",
         b"select a /*repeat union all*/"),
        (b"select a union select abc", b"select a /*repeat union*/bc"),
        (b"select a union select b", b"select a union select b"),
        (b"(select a union select a) x (select b union all select b)",
         b"(select a /*repeat union*/) x (select b /*repeat union all*/)"),
        (b"select a union select b union select a union select b",
         b"select a union select b /*repeat union*/"),
        (b"preselect a union select a", b"preselect a union select a"),
        (b"", b""),
    ],
)  # fmt: skip
def test_repeated_branch_folds_to_one_and_a_repeat_comment(text, folded):
    assert fold_unions(text) == folded


def test_group_of_300_branches_folds():
    group = b" union ".join(b"select x from t_" + word for word in WORDS[:300])

    assert (
        fold_unions(group + b" union all " + group) == group + b" /*repeat union all*/"
    )


def test_folding_stops_when_the_work_limit_is_reached(monkeypatch):
    monkeypatch.setattr(unions, "MIN_WORK", 0)
    monkeypatch.setattr(unions, "WORK_PER_BYTE", 1)
    first = b"select z union select z union "
    slow = square_free(20_000)

    assert fold_unions(first + slow) == b"select z /*repeat union*/ union " + slow
