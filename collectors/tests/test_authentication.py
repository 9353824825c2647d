"""Methods, refusals and hashes, as labels from closed sets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from keylag_otel import authentication, gauges, revocation
from keylag_otel.tally import attributes_of


def counted(clock) -> dict[tuple, int]:
    return {
        tuple(attributes_of(number)[1].values()): count
        for number, count in clock.tallies.items()
    }


@pytest.mark.parametrize(
    ("hashed", "found"),
    [
        ("$2b$12$" + "a" * 53, ("bcrypt", 12)),
        ("$2a$04$" + "a" * 53, ("bcrypt", 4)),
        ("$bcrypt-sha256$v=2,t=2b,r=10$salt$digest", ("bcrypt_sha256", 10)),
        ("$bcrypt-sha256$2b,12$salt$digest", ("other", 0)),
        ("$scrypt$ln=16,r=8,p=1$salt$digest", ("scrypt", 16)),
        ("$pbkdf2-sha512$25000$salt$digest", ("pbkdf2_sha512", 25000)),
        ("$6$rounds=10000$salt$digest", ("sha512_crypt", 10000)),
        ("$pbkdf2-sha512$" + "9" * 5000 + "$salt$digest", ("other", 0)),
        ("plain text?", ("other", 0)),
        ("", ("other", 0)),
    ],
)
def test_a_hash_tells_its_algorithm_and_cost(hashed, found) -> None:
    assert authentication.algorithm_of(hashed) == found


def test_checks_and_new_hashes_are_counted_apart(running) -> None:
    hashed = "$2b$12$" + "a" * 53
    authentication.note_check(running, ("secret", hashed), {})
    authentication.note_check(running, (), {"password": "secret", "hashed": hashed})
    authentication.note_check(running, ("secret", None), {})
    authentication.note_hash(running, ("secret",), hashed)

    assert counted(running) == {("bcrypt", 12, "check"): 2, ("bcrypt", 12, "set"): 1}


@pytest.mark.parametrize(
    ("methods", "label"),
    [
        (["password"], "password"),
        (["totp", "password", "totp"], "password+totp"),
        (["token", "totp"], "token+totp"),
        (["x" * 500], "other"),
        (["password", "x"], "multiple"),
        (["oauth1", "x509"], "multiple"),
        ([], "other"),
        ([{}], "other"),
        (None, "other"),
    ],
)
def test_methods_are_one_label_of_a_closed_set(running, methods, label) -> None:
    authentication.note_method(running, ({"identity": {"methods": methods}},), {})

    assert running.auth_method == label


def test_any_subset_of_methods_makes_some_ten_labels() -> None:
    names = [*sorted(authentication.METHODS), "made-up"]
    subsets = (
        [name for bit, name in enumerate(names) if number >> bit & 1]
        for number in range(1 << len(names))
    )

    labels = {authentication.label_of(subset) for subset in subsets}

    assert len(labels) == len(authentication.METHODS) + 5


@pytest.mark.parametrize("auth", [None, {}, {"identity": None}, {"identity": {}}])
def test_a_request_that_names_no_method_is_no_fault(running, auth) -> None:
    authentication.note_method(running, (), {"auth": auth})

    assert running.auth_method == "other"


def test_a_refusal_has_the_name_of_keystones_exception_and_no_other(running) -> None:
    known = type("UserDisabled", (Exception,), {"__module__": "keystone.exception"})
    running.auth_method = "password"

    authentication.note_failure(running, (), known())
    authentication.note_failure(running, (), ValueError())

    assert counted(running) == {
        ("password", "UserDisabled"): 1,
        ("password", "other"): 1,
    }


class Event:
    """A revocation event with some of its attributes set."""

    def __init__(self, **attributes: str) -> None:
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (Event(user_id="u"), "user"),
        (Event(user_id="u", project_id="p"), "project"),
        (Event(user_id="u", audit_id="a"), "audit_id"),
        (Event(audit_chain_id="c", domain_id="d"), "audit_chain"),
        (Event(domain_scope_id="d"), "domain"),
        (Event(trust_id="t", user_id=None), "trust"),
        (Event(), "other"),
    ],
)
def test_an_event_is_of_its_most_telling_kind(event, kind) -> None:
    assert revocation.kind_of(event) == kind


def test_fetched_and_written_events_are_counted_by_kind(running) -> None:
    revocation.note_fetched(running, (), [Event(user_id="u"), Event(user_id="v")])
    revocation.note_written(running, ("manager", Event(audit_id="a")), {})

    assert counted(running) == {("user",): 2, ("audit_id",): 1}


def test_before_keystone_runs_there_is_nothing_to_read(monkeypatch) -> None:
    monkeypatch.setattr(gauges, "_configuration", lambda: None)

    assert [list(read()) for read in gauges.READ.values()] == [[], [], [], []]


@pytest.mark.parametrize(
    ("algorithm", "rounds", "cost"),
    [
        ("bcrypt", None, 12),
        ("bcrypt", 4, 4),
        ("pbkdf2_sha512", None, 25_000),
        ("scrypt", 4, 16),
        ("made-up", None, 0),
    ],
)
def test_the_cost_of_new_passwords_is_what_keystone_makes_of_its_options(
    monkeypatch, algorithm, rounds, cost
) -> None:
    identity = SimpleNamespace(
        password_hash_algorithm=algorithm, password_hash_rounds=rounds
    )
    configuration = SimpleNamespace(identity=identity)
    monkeypatch.setattr(gauges, "_configuration", lambda: configuration)

    ((read, attributes),) = gauges.password_hash_cost()

    assert read == cost
    assert attributes == {"keystone.password_hash.algorithm": algorithm}


@pytest.mark.parametrize(
    ("enabled", "backend"), [(True, "dogpile.cache.null"), (False, "disabled")]
)
def test_what_is_configured_is_told_by_its_attributes(
    monkeypatch, enabled, backend
) -> None:
    configuration = SimpleNamespace(
        cache=SimpleNamespace(backend="dogpile.cache.null", enabled=enabled),
        token=SimpleNamespace(provider="fernet"),
        identity=SimpleNamespace(password_hash_algorithm="bcrypt"),  # noqa: S106
    )
    monkeypatch.setattr(gauges, "_configuration", lambda: configuration)

    ((value, attributes),) = gauges.configuration_info()

    assert value == 1
    assert set(attributes.values()) == {backend, "fernet", "bcrypt"}


def test_key_repositories_are_read_as_they_are_now(monkeypatch, tmp_path) -> None:
    for name in ("0", "3", "7", "not-a-key"):
        (tmp_path / name).write_text("key")
    group = type("Group", (), {"key_repository": str(tmp_path)})
    absent = type("Group", (), {"key_repository": str(tmp_path / "absent")})
    groups = {"fernet_tokens": group, "fernet_receipts": absent}
    monkeypatch.setattr(gauges, "_configuration", lambda: groups)

    repository = {"keystone.fernet.repository": "tokens"}
    ((age, attributes),) = gauges.fernet_primary_age()
    assert list(gauges.fernet_keys()) == [(3, repository)]
    assert attributes == repository
    assert 0 <= age < 60
