"""Simulated misses of longer cache times, with a fake clock."""

from __future__ import annotations

import logging

import pytest
from keystonemiddleware.auth_token._cache import TokenCache

from keylag_otel.auth_token import token_reuse
from keylag_otel.auth_token.hooks import DEFAULT_CACHE_SECONDS as DEFAULT
from keylag_otel.auth_token.hooks import cache_seconds
from keylag_otel.auth_token.token_reuse import CACHE_TIME_FACTORS, TokenReuse

CACHE_SECONDS = 300
TOKEN = "a-token"  # noqa: S105


class FakeClock:
    """A clock in seconds that tests advance."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """Looks tokens up in a real cache and in the simulated ones."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.replay = TokenReuse(self.clock)
        self.kept: dict[str, float] = {}
        self.misses = dict.fromkeys(CACHE_TIME_FACTORS, 0)
        self.ages: list[float | None] = []

    def use(self, token: str = TOKEN, *, valid: bool = True) -> None:
        hit = self.clock.now - self.kept.get(token, -1e9) < CACHE_SECONDS
        age, misses = self.replay.look_up(token, CACHE_SECONDS, hit=hit)
        self.ages.append(age)
        for times in misses:
            self.misses[times] += 1
        if not hit and valid:
            self.kept[token] = self.clock.now
            self.replay.record_validation(token, CACHE_SECONDS)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_constant_use_misses_once_per_cache_time(worker) -> None:
    for second in range(0, 3600, 10):
        worker.clock.now = second
        worker.use()

    assert worker.misses == {1: 12, 2: 6, 4: 3, 12: 1}


def test_simulation_with_factor_1_matches_reality(worker) -> None:
    for second in (0, 10, 299, 300, 301, 650, 2000, 2001):
        worker.clock.now = second
        worker.use()

    record_validation = sum(age is None or age >= CACHE_SECONDS for age in worker.ages)
    assert worker.misses[1] == record_validation == 4


def test_tokens_used_once_always_miss(worker) -> None:
    for number in range(5):
        worker.clock.now += 1
        worker.use(f"token-{number}")

    assert set(worker.misses.values()) == {5}
    assert worker.ages == [None] * 5


def test_refused_token_misses_in_each_simulation(worker) -> None:
    for _ in range(3):
        worker.use(valid=False)

    assert set(worker.misses.values()) == {3}


def test_age_of_a_hit_is_the_time_since_validation(worker) -> None:
    for second in (0, 5, 100, 400):
        worker.clock.now = second
        worker.use()

    assert worker.ages == [None, 5, 100, 400]


def test_hit_renewed_by_another_worker_has_no_age() -> None:
    clock = FakeClock()
    worker = TokenReuse(clock)
    worker.record_validation(TOKEN, CACHE_SECONDS)
    clock.now = CACHE_SECONDS + 1

    assert worker.look_up(TOKEN, CACHE_SECONDS, hit=True) == (None, [1])


def test_cache_time_of_zero_always_misses() -> None:
    worker = TokenReuse(FakeClock())
    worker.record_validation(TOKEN, -1)

    _, misses = worker.look_up(TOKEN, -1, hit=False)
    assert misses == list(CACHE_TIME_FACTORS)


def test_least_recently_used_tokens_are_dropped(worker, monkeypatch) -> None:
    monkeypatch.setattr(token_reuse, "TOKEN_LIMIT", 2)
    for token in ("old", "used", "old", "new"):
        worker.use(token)

    ages = {
        token: worker.replay.look_up(token, CACHE_SECONDS, hit=False)[0]
        for token in ("old", "new", "used")
    }
    assert ages == {"old": 0, "new": 0, "used": None}


def test_tokens_are_not_stored(worker) -> None:
    worker.use("canary-token")

    assert "canary-token" not in repr(list(worker.replay._uses.items()))
    assert [type(key) for key in worker.replay._uses] == [int]


def test_made_up_tokens_displace_no_others(worker, monkeypatch) -> None:
    monkeypatch.setattr(token_reuse, "TOKEN_LIMIT", 10)
    worker.use()
    for number in range(1000):
        worker.use(f"made-up-{number}", valid=False)
    worker.clock.now = 100
    worker.use()

    assert worker.ages[-1] == 100
    assert len(worker.replay._uses) == 1


@pytest.mark.parametrize(
    ("configured", "simulated"), [(600, 600), (0, DEFAULT), (-1, DEFAULT)]
)
def test_a_service_that_does_not_cache_is_compared_with_the_default(
    configured, simulated
) -> None:
    cache = TokenCache(logging.getLogger(__name__), cache_time=configured)

    assert cache_seconds(cache) == simulated
