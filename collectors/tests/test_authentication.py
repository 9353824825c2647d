"""Labels of methods, refusals and hashes are closed sets."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from keylag_otel import authentication, gauges, revocation
from keylag_otel.counters import counter_attributes


def counted(timer) -> dict[tuple, int]:
    return {
        tuple(counter_attributes(number)[1].values()): count
        for number, count in timer.counters.items()
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
def test_hash_has_algorithm_and_cost(hashed, found) -> None:
    assert authentication.hash_algorithm(hashed) == found


def test_checks_and_new_hashes_are_counted_separately(active_timer) -> None:
    hashed = "$2b$12$" + "a" * 53
    authentication.count_password_check(active_timer, ("secret", hashed), {})
    authentication.count_password_check(
        active_timer, (), {"password": "secret", "hashed": hashed}
    )
    authentication.count_password_check(active_timer, ("secret", None), {})
    authentication.count_password_hash(active_timer, ("secret",), hashed)

    assert counted(active_timer) == {
        ("bcrypt", 12, "check"): 2,
        ("bcrypt", 12, "set"): 1,
    }


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
def test_methods_map_to_a_closed_set_of_labels(active_timer, methods, label) -> None:
    authentication.record_auth_method(
        active_timer, ({"identity": {"methods": methods}},), {}
    )

    assert active_timer.auth_method == label


def test_all_subsets_of_methods_have_few_labels() -> None:
    names = [*sorted(authentication.METHODS), "made-up"]
    subsets = (
        [name for bit, name in enumerate(names) if number >> bit & 1]
        for number in range(1 << len(names))
    )

    labels = {authentication.auth_method_label(subset) for subset in subsets}

    assert len(labels) == len(authentication.METHODS) + 5


@pytest.mark.parametrize("auth", [None, {}, {"identity": None}, {"identity": {}}])
def test_request_without_methods_causes_no_fault(active_timer, auth) -> None:
    authentication.record_auth_method(active_timer, (), {"auth": auth})

    assert active_timer.auth_method == "other"


def test_refusal_is_labelled_with_keystones_exception_only(
    active_timer,
) -> None:
    known = type("UserDisabled", (Exception,), {"__module__": "keystone.exception"})
    active_timer.auth_method = "password"

    authentication.count_auth_failure(active_timer, (), known())
    authentication.count_auth_failure(active_timer, (), ValueError())

    assert counted(active_timer) == {
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
def test_event_has_its_most_specific_kind(event, kind) -> None:
    assert revocation.kind_of(event) == kind


def test_fetched_and_written_events_are_counted_by_kind(active_timer) -> None:
    revocation.count_fetched_events(
        active_timer, (), [Event(user_id="u"), Event(user_id="v")]
    )
    revocation.count_written_event(active_timer, ("manager", Event(audit_id="a")), {})

    assert counted(active_timer) == {("user",): 2, ("audit_id",): 1}


def test_gauges_are_empty_without_keystone(monkeypatch) -> None:
    monkeypatch.setattr(gauges, "_keystone_conf", lambda: None)

    assert not any(list(read()) for read in gauges.CALLBACKS.values())


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
def test_password_hash_cost_follows_keystones_options(
    monkeypatch, algorithm, rounds, cost
) -> None:
    identity = SimpleNamespace(
        password_hash_algorithm=algorithm, password_hash_rounds=rounds
    )
    configuration = SimpleNamespace(identity=identity)
    monkeypatch.setattr(gauges, "_keystone_conf", lambda: configuration)

    ((read, attributes),) = gauges.password_hash_cost()

    assert read == cost
    assert attributes == {"keystone.password_hash.algorithm": algorithm}


POOL = "oslo_cache.memcache_pool"


@pytest.mark.parametrize(
    ("enabled", "configured", "backend", "servers"),
    [
        (True, "dogpile.cache.null", "dogpile.cache.null", ""),
        (False, POOL, "disabled", ""),
        (True, POOL, POOL, "b:11211,a:11211"),
    ],
)
def test_configuration_info_has_options_as_attributes(
    monkeypatch, enabled, configured, backend, servers
) -> None:
    configuration = SimpleNamespace(
        cache=SimpleNamespace(
            backend=configured,
            enabled=enabled,
            memcache_servers=["b:11211", "a:11211"],
        ),
        token=SimpleNamespace(provider="fernet"),
        identity=SimpleNamespace(password_hash_algorithm="bcrypt"),  # noqa: S106
    )
    monkeypatch.setattr(gauges, "_keystone_conf", lambda: configuration)

    ((value, attributes),) = gauges.configuration_info()

    assert value == 1
    assert list(attributes.values()) == [backend, servers, "fernet", "bcrypt"]


def test_sections_may_have_their_own_cache_time(monkeypatch) -> None:
    names = gauges.CACHED_SECTIONS
    sections = {name: SimpleNamespace(cache_time=None) for name in names}
    sections["role"].cache_time = 0
    cache = SimpleNamespace(enabled=True, expiration_time=600)
    configuration = MagicMock(cache=cache)
    configuration.__getitem__.side_effect = sections.get
    monkeypatch.setattr(gauges, "_keystone_conf", lambda: configuration)

    found = {
        attributes["keystone.configuration.section"]: seconds
        for seconds, attributes in gauges.cache_expiration_time()
    }
    assert found == {**dict.fromkeys(names, 600), "role": 0}

    cache.enabled = False
    assert list(gauges.cache_expiration_time()) == []


@pytest.mark.parametrize(
    "server",
    [
        *("localhost:11211", "127.0.0.1:11211", "127.0.0.53:11211", "[::1]:11211"),
        *("inet:127.0.0.1:11211", "inet6:[::1]:11211"),
    ],
)
def test_local_cache_servers_have_the_name_of_the_host(monkeypatch, server) -> None:
    monkeypatch.setattr(gauges.socket, "gethostname", lambda: "ctl1")
    servers = [server, "ctl2:11211", "localhost.example:11211", "unix:/run/memcached"]

    found = gauges._cache_servers(POOL, servers)

    assert found == "ctl1:11211,ctl2:11211,localhost.example:11211,ctl1"


def test_key_repositories_are_read_at_each_export(monkeypatch, tmp_path) -> None:
    for name in ("0", "3", "7", "not-a-key"):
        (tmp_path / name).write_text("key")
    group = type("Group", (), {"key_repository": str(tmp_path)})
    absent = type("Group", (), {"key_repository": str(tmp_path / "absent")})
    groups = {"fernet_tokens": group, "fernet_receipts": absent}
    monkeypatch.setattr(gauges, "_keystone_conf", lambda: groups)

    repository = {"keystone.fernet.repository": "tokens"}
    ((age, attributes),) = gauges.fernet_primary_age()
    assert list(gauges.fernet_keys()) == [(3, repository)]
    assert attributes == repository
    assert 0 <= age < 60
