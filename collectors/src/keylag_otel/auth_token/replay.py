"""How old tokens are when they are used again, and what longer caching would save.

A worker replays its own uses of tokens against caches that keep them longer than
the real one does, and counts the misses.  A renewal is believed from the moment
it was made, as in the real cache; what another worker cached is not known here,
so the counts are good for ratios between them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from time import monotonic
from typing import Callable

#: How many times as long as configured; 1 is what the others are compared with.
TIMES = (1, 2, 4, 12)

#: Tokens remembered, some 300 bytes each; the longest unused is forgotten first.
LIMIT = 10_000

_LONG_AGO = float("-inf")


class _Use:
    """When Keystone last validated a token, really and in each replay."""

    __slots__ = ("real", "replayed")

    def __init__(self) -> None:
        self.real = _LONG_AGO
        self.replayed = [_LONG_AGO] * len(TIMES)


class Replay:
    """The uses of tokens in this process.

    A token is known by Python's own hash of it, which another process cannot
    reproduce, so that none is kept.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._uses: OrderedDict[int, _Use] = OrderedDict()
        self._lock = Lock()

    def looked_up(
        self, token: str, cache_seconds: float, *, hit: bool
    ) -> tuple[float | None, list[int]]:
        """Note a look-up; return the token's age, None if that is not known here.

        And the ``TIMES`` at which the look-up would have been a miss.
        """
        moment = self._clock()
        with self._lock:
            # Of a token that nobody has accepted yet nothing is kept, lest those
            # that somebody makes up drive out all others.
            is_known = hit or hash(token) in self._uses
            use = self._use_of(token) if is_known else _Use()
            age = moment - use.real
            misses = list(self._stale(use, moment, cache_seconds))
            if hit:
                self._renew(use, misses, moment)
        # A hit of what should be gone: another worker has renewed it.
        unknown = use.real == _LONG_AGO or (hit and age > cache_seconds)
        return None if unknown else age, [TIMES[index] for index in misses]

    def validated(self, token: str, cache_seconds: float) -> None:
        """Note that Keystone has accepted the token, and that it is cached."""
        moment = self._clock()
        with self._lock:
            use = self._use_of(token)
            use.real = moment
            self._renew(use, self._stale(use, moment, cache_seconds), moment)

    def _use_of(self, token: str) -> _Use:
        key = hash(token)
        use = self._uses.setdefault(key, _Use())
        self._uses.move_to_end(key)
        if len(self._uses) > LIMIT:
            self._uses.popitem(last=False)
        return use

    @staticmethod
    def _stale(use: _Use, moment: float, cache_seconds: float) -> Iterable[int]:
        for index, times in enumerate(TIMES):
            if moment - use.replayed[index] >= times * cache_seconds:
                yield index

    @staticmethod
    def _renew(use: _Use, indexes: Iterable[int], moment: float) -> None:
        for index in indexes:
            use.replayed[index] = moment


REPLAY = Replay()
