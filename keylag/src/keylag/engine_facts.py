"""What the samples of a load from several machines tell about its engines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from keylag.engine_log import EngineLog
from keylag.jtl import Sample
from keylag.remote_engines import Engine, engine_of

CLOCK_TOLERANCE_SECONDS: Final = 1.0


def count_lines(samples: Sequence[Sample], engines: Sequence[Engine]) -> list[str]:
    """Return the number of requests of each engine, without set-up, as sentences."""
    sent = [sample for sample in samples if not sample.is_setup]
    done = Counter(engine_of(sample.thread, engines) for sample in sent)
    failed = Counter(
        engine_of(sample.thread, engines) for sample in sent if not sample.success
    )
    return [
        f"Engine {one}: {done[one]} requests, {failed[one] or 'no'} errors"
        for one in engines
    ]


def clock_warnings(
    samples: Iterable[Sample], engines: Sequence[Engine], log: EngineLog
) -> Iterator[str]:
    """Yield a sentence on each engine whose clock differs from the controller's.

    The controller logs the start of an engine before the engine's first sample and its
    end after the last one; a sample outside shows the least difference of the clocks.
    """
    begin: dict[str, float] = {}
    end: dict[str, float] = {}
    for sample in samples:
        name = str(engine_of(sample.thread, engines))
        start = sample.start_seconds
        begin[name] = min(start, begin.get(name, start))
        end[name] = max(start + sample.elapsed_seconds, end.get(name, start))
    for name in map(str, engines):
        behind = log.started.get(name, 0.0) - begin.get(name, 0.0)
        ahead = end.get(name, 0.0) - log.finished.get(name, float("inf"))
        difference, word = max((behind, "behind"), (ahead, "ahead of"))
        if name in begin and difference > CLOCK_TOLERANCE_SECONDS:
            yield (
                f"The clock of engine {name} is at least {difference:.0f} s {word} "
                "this machine's. Requests per second and the order of the samples are "
                "wrong, latencies are right. Synchronise the clocks with NTP."
            )
