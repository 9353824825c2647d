"""The age of reused tokens, and the misses that a longer token_cache_time would save.

Each worker simulates caches with longer cache times on its own look-ups and counts
their misses.  It does not know what other workers cached, so only ratios between the
counts are meaningful.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from time import monotonic
from typing import Callable

#: Simulated multiples of token_cache_time; 1 is the reference of the others.
CACHE_TIME_FACTORS = (1, 2, 4, 12)

#: Tokens in memory, some 300 bytes each; the least recently used is dropped first.
TOKEN_LIMIT = 10_000

_LONG_AGO = float("-inf")


class _TokenUse:
    """When a token was last validated online, really and in each simulation."""

    __slots__ = ("simulated", "validated_at")

    def __init__(self) -> None:
        self.validated_at = _LONG_AGO
        self.simulated = [_LONG_AGO] * len(CACHE_TIME_FACTORS)


class TokenReuse:
    """The look-ups of tokens in this process.

    It stores Python's hash of a token, which other processes cannot reproduce, and no
    token.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._uses: OrderedDict[int, _TokenUse] = OrderedDict()
        self._lock = Lock()

    def look_up(
        self, token: str, cache_seconds: float, *, hit: bool
    ) -> tuple[float | None, list[int]]:
        """Record a look-up; return the token's age and the simulated misses.

        The age is in seconds, or None if unknown in this worker.  The misses are the
        ``CACHE_TIME_FACTORS`` with which the look-up would be a miss.
        """
        moment = self._clock()
        with self._lock:
            # Tokens that were never accepted are not stored, so that made-up tokens do
            # not displace others.
            is_known = hit or hash(token) in self._uses
            use = self._use_of(token) if is_known else _TokenUse()
            age = moment - use.validated_at
            misses = list(self._stale(use, moment, cache_seconds))
            if hit:
                self._renew(use, misses, moment)
        # A hit after its expiry: another worker has renewed it.
        unknown = use.validated_at == _LONG_AGO or (hit and age > cache_seconds)
        return None if unknown else age, [CACHE_TIME_FACTORS[index] for index in misses]

    def record_validation(self, token: str, cache_seconds: float) -> None:
        """Record that Keystone accepted the token, and that it is cached."""
        moment = self._clock()
        with self._lock:
            use = self._use_of(token)
            use.validated_at = moment
            self._renew(use, self._stale(use, moment, cache_seconds), moment)

    def _use_of(self, token: str) -> _TokenUse:
        key = hash(token)
        use = self._uses.setdefault(key, _TokenUse())
        self._uses.move_to_end(key)
        if len(self._uses) > TOKEN_LIMIT:
            self._uses.popitem(last=False)
        return use

    @staticmethod
    def _stale(use: _TokenUse, moment: float, cache_seconds: float) -> Iterable[int]:
        for index, times in enumerate(CACHE_TIME_FACTORS):
            if moment - use.simulated[index] >= times * cache_seconds:
                yield index

    @staticmethod
    def _renew(use: _TokenUse, indexes: Iterable[int], moment: float) -> None:
        for index in indexes:
            use.simulated[index] = moment


TOKEN_REUSE = TokenReuse()
