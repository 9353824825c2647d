"""Whose validations they are, told from the name of the asking user."""

from __future__ import annotations

import pytest

from keylag_otel.callers import caller_of


@pytest.mark.parametrize(
    ("user", "caller"),
    [("nova", "nova"), ("Nova", "other"), ("alice", "other"), ("", "other")],
)
def test_only_names_of_services_are_told(user, caller) -> None:
    assert caller_of(user) == caller
