"""What longer caching would save, replayed with a clock that tests move."""

from __future__ import annotations

import pytest

from keylag_otel.auth_token import replay
from keylag_otel.auth_token.replay import TIMES, Replay

CACHE_SECONDS = 300
TOKEN = "a-token"  # noqa: S105


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """Looks tokens up in a cache that is the real one, and in its replays."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.replay = Replay(self.clock)
        self.kept: dict[str, float] = {}
        self.misses = dict.fromkeys(TIMES, 0)
        self.ages: list[float | None] = []

    def use(self, token: str = TOKEN, *, valid: bool = True) -> None:
        hit = self.clock.now - self.kept.get(token, -1e9) < CACHE_SECONDS
        age, misses = self.replay.looked_up(token, CACHE_SECONDS, hit=hit)
        self.ages.append(age)
        for times in misses:
            self.misses[times] += 1
        if not hit and valid:
            self.kept[token] = self.clock.now
            self.replay.validated(token, CACHE_SECONDS)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_constant_use_needs_a_validation_each_cache_time(worker) -> None:
    for second in range(0, 3600, 10):
        worker.clock.now = second
        worker.use()

    assert worker.misses == {1: 12, 2: 6, 4: 3, 12: 1}


def test_the_replay_at_once_the_time_is_what_really_happened(worker) -> None:
    for second in (0, 10, 299, 300, 301, 650, 2000, 2001):
        worker.clock.now = second
        worker.use()

    validated = sum(age is None or age >= CACHE_SECONDS for age in worker.ages)
    assert worker.misses[1] == validated == 4


def test_tokens_used_once_are_not_saved_by_any_cache(worker) -> None:
    for number in range(5):
        worker.clock.now += 1
        worker.use(f"token-{number}")

    assert set(worker.misses.values()) == {5}
    assert worker.ages == [None] * 5


def test_a_refused_token_is_asked_about_again_however_long_one_caches(worker) -> None:
    for _ in range(3):
        worker.use(valid=False)

    assert set(worker.misses.values()) == {3}


def test_a_hits_age_is_since_the_validation(worker) -> None:
    for second in (0, 5, 100, 400):
        worker.clock.now = second
        worker.use()

    assert worker.ages == [None, 5, 100, 400]


def test_a_hit_of_what_another_worker_renewed_has_no_age_here() -> None:
    clock = Clock()
    worker = Replay(clock)
    worker.validated(TOKEN, CACHE_SECONDS)
    clock.now = CACHE_SECONDS + 1

    assert worker.looked_up(TOKEN, CACHE_SECONDS, hit=True) == (None, [1])


def test_a_cache_that_keeps_nothing_saves_nothing() -> None:
    worker = Replay(Clock())
    worker.validated(TOKEN, -1)

    _, misses = worker.looked_up(TOKEN, -1, hit=False)
    assert misses == list(TIMES)


def test_tokens_are_forgotten_the_longest_unused_first(worker, monkeypatch) -> None:
    monkeypatch.setattr(replay, "LIMIT", 2)
    for token in ("old", "used", "old", "new"):
        worker.use(token)

    ages = {
        token: worker.replay.looked_up(token, CACHE_SECONDS, hit=False)[0]
        for token in ("old", "new", "used")
    }
    assert ages == {"old": 0, "new": 0, "used": None}


def test_no_token_is_kept(worker) -> None:
    worker.use("canary-token")

    assert "canary-token" not in repr(list(worker.replay._uses.items()))
    assert [type(key) for key in worker.replay._uses] == [int]


def test_tokens_that_somebody_makes_up_drive_out_no_others(worker, monkeypatch) -> None:
    monkeypatch.setattr(replay, "LIMIT", 10)
    worker.use()
    for number in range(1000):
        worker.use(f"made-up-{number}", valid=False)
    worker.clock.now = 100
    worker.use()

    assert worker.ages[-1] == 100
    assert len(worker.replay._uses) == 1
