"""Whose validations they are, told from the name of the asking user."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from keylag_otel.callers import caller_of, note_caller
from keylag_otel.clock import start
from keylag_otel.tally import tally


@pytest.mark.parametrize(
    ("user", "caller"),
    [("nova", "nova"), ("Nova", "other"), ("alice", "other"), ("", "other")],
)
def test_only_names_of_services_are_told(user, caller) -> None:
    assert caller_of(user) == caller


@pytest.mark.parametrize(
    ("environ", "counted"),
    [
        ({"keystone.token_auth": SimpleNamespace(has_user_token=True)}, {"nova": 1}),
        ({"keystone.token_auth": SimpleNamespace(has_user_token=False)}, {}),
        ({}, {}),
    ],
    ids=["a token", "a wrong token", "no middleware"],
)
def test_a_name_counts_only_where_a_token_proves_it(environ, counted) -> None:
    clock: Any = start({"HTTP_X_USER_NAME": "nova", **environ})

    note_caller(clock, (), {})

    numbers = {tally("validations", name): count for name, count in counted.items()}
    assert clock.tallies == numbers
