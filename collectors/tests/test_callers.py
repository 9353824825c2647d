"""The service that requests a validation, by its user name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from keylag_otel.callers import count_validation, service_of_user
from keylag_otel.counters import counter_id
from keylag_otel.request_timer import start_timer


@pytest.mark.parametrize(
    ("user", "caller"),
    [("nova", "nova"), ("Nova", "other"), ("alice", "other"), ("", "other")],
)
def test_only_known_services_are_labels(user, caller) -> None:
    assert service_of_user(user) == caller


@pytest.mark.parametrize(
    ("environ", "counted"),
    [
        ({"keystone.token_auth": SimpleNamespace(has_user_token=True)}, {"nova": 1}),
        ({"keystone.token_auth": SimpleNamespace(has_user_token=False)}, {}),
        ({}, {}),
    ],
    ids=["a token", "a wrong token", "no middleware"],
)
def test_user_name_counts_only_with_a_user_token(environ, counted) -> None:
    timer: Any = start_timer({"HTTP_X_USER_NAME": "nova", **environ})

    count_validation(timer, (), {})

    numbers = {
        counter_id("validations", name): count for name, count in counted.items()
    }
    assert timer.counters == numbers
