"""A real, unmodified Keystone in this process, on SQLite."""

from __future__ import annotations

from typing import Any

import pytest
from keystone_client import password

PASSWORD_AUTH = {"auth": password("admin")}


def timing(response: Any) -> dict[str, float]:
    """Entry name to milliseconds, or to a count."""
    return {
        part.split(";")[0]: float(part.rpartition("=")[2])
        for part in response.headers["Server-Timing"].split(", ")
    }


def issue(keystone: Any) -> Any:
    response = keystone.post("/v3/auth/tokens", json=PASSWORD_AUTH, buffered=True)
    assert response.status_code == 201, response.text
    return response


def validate(keystone: Any, token: str, path: str = "/v3/auth/tokens") -> Any:
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    return keystone.get(path, headers=headers, buffered=True)


def remembers_revocation_checks() -> bool:
    """Keystone 2023.1 queries the database in each validation."""
    from keystone.token.provider import Manager

    return hasattr(Manager.check_revocation_v3, "invalidate")


def test_all_seams_of_this_keystone_are_bound(keystone) -> None:
    from keylag_otel import KeystoneInstrumentor

    issue(keystone)
    states = {
        f"{b.seam.module}:{b.seam.path}": b.state
        for b in KeystoneInstrumentor().bindings
        if not b.seam.optional or b.state == "changed"
    }

    assert {name: s for name, s in states.items() if s != "bound"} == {}


def test_password_login_has_hash_sql_and_crypto_time(keystone) -> None:
    entries = timing(issue(keystone))

    assert entries["password_hash.authenticate"] > 0
    assert entries["sql.authenticate"] > 0
    assert entries["orm.authenticate"] > 0
    assert entries["token_crypto.issue"] > 0
    assert entries["cache"] > 0
    assert entries["sql_statements"] > 0


def test_validation_has_revocation_and_policy_time(keystone) -> None:
    token = issue(keystone).headers["X-Subject-Token"]

    first = timing(validate(keystone, token))
    second = timing(validate(keystone, token))

    assert first["sql.check_revocation"] > 0
    assert first["revocation_match.check_revocation"] > 0
    assert first["policy.enforce"] > 0
    assert second["revocation"] > 0
    if remembers_revocation_checks():
        assert "sql.check_revocation" not in second
        assert second["sql_statements"] == 0


def test_categories_and_cells_add_up_to_the_total(keystone) -> None:
    token = issue(keystone).headers["X-Subject-Token"]

    for response in (issue(keystone), validate(keystone, token)):
        entries = timing(response)
        names = list(entries)
        blocks = sum(entries[name] for name in names[1:8])
        cells = sum(value for name, value in entries.items() if "." in name)
        assert blocks == pytest.approx(entries["total"], abs=0.01)
        assert cells == pytest.approx(entries["total"], abs=0.01)


def test_statement_count_matches_sqlalchemy(keystone) -> None:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    executed = []

    def listen(*args: Any) -> None:
        executed.append(args[2])

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        entries = timing(issue(keystone))
    finally:
        event.remove(Engine, "before_cursor_execute", listen)

    assert len(executed) == entries["sql_statements"]


def test_labels_contain_no_ids(keystone) -> None:
    from keylag_otel.request_aggregator import AGGREGATOR

    token = issue(keystone).headers["X-Subject-Token"]
    project = validate(keystone, token).json["token"]["project"]["id"]
    validate(keystone, token, f"/v3/projects/{project}")
    validate(keystone, "not-a-token")

    rows = [attributes for _, attributes in AGGREGATOR.request_counts("sql_statements")]
    seen = {
        (
            row["http.request.method"],
            row.get("http.route"),
            row["http.response.status_code"],
            row.get("keystone.auth.method"),
        )
        for row in rows
    }
    assert ("POST", "/v3/auth/tokens", 201, "password") in seen
    assert ("GET", "/v3/auth/tokens", 200, None) in seen
    assert ("GET", "/v3/projects/{project_id}", 200, None) in seen
    assert any(status == 401 for _, _, status, _ in seen)
    assert project not in str(rows)
    assert token not in str(rows)


def test_unknown_auth_methods_create_no_series(keystone) -> None:
    from keylag_otel.request_aggregator import AGGREGATOR

    for name in ("made-up-1", "made-up-2"):
        auth = {"auth": {"identity": {"methods": [name], name: {}}}}
        keystone.post("/v3/auth/tokens", json=auth, buffered=True)

    methods = {
        a.get("keystone.auth.method")
        for _, a in AGGREGATOR.request_counts("cache_calls")
    }
    assert "other" in methods
    assert not any("made-up" in str(method) for method in methods)
