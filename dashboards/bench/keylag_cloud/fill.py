"""Fills a Prometheus with the series of a cloud, in blocks of two hours."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from keylag_cloud import prometheus
from keylag_cloud.grafana import RANGES, Opening, boards
from keylag_cloud.model import Cloud, Load, Numbers, Series
from keylag_cloud.prometheus import BLOCK_SECONDS, Prometheus
from keylag_cloud.rules import (
    RecordedSeries,
    SmallCloud,
    at_each_worker,
    recording_rules,
)
from keylag_dashboards.config import (
    COARSE,
    COARSE_SECONDS,
    FINE,
    RECORDING_SECONDS,
)
from keylag_dashboards.promql import metric_names

SELDOM_SECONDS: Final = 7200
"""Interval of the samples of series that panels do not read, or at the end only."""
AT_END: Final = "@ end() < 0"
CHUNK: Final = 2000
"""Series whose values are computed together."""

_SELECTOR: Final = re.compile(r'[a-zA-Z_:][\w:]*\{(?:[^}"]|"(?:[^"\\]|\\.)*")*\}')
_INSTANCES: Final = frozenset({"instance", "service_instance_id", "worker"})

Identity = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True)
class Filling:
    """What to fill a Prometheus with."""

    cloud: Cloud
    end: int
    raw_hours: int
    recorded_hours: int
    scrape_seconds: int

    @property
    def load(self) -> Load:
        """The load, from before the first sample."""
        return Load(self.windows()[-1].start, self.end, self.cloud.seed)

    def windows(self) -> list[range]:
        """Return the seconds of each block, the last one first."""
        first = self.end - max(self.recorded_hours, self.raw_hours) * 3600
        starts = range(self.end - BLOCK_SECONDS, first - 1, -BLOCK_SECONDS)
        return [range(start, start + BLOCK_SECONDS) for start in starts]

    def has_raw(self, window: range) -> bool:
        """Return whether the scraped series are in a block, not only recorded ones."""
        return window.start >= self.end - self.raw_hours * 3600


@dataclass(frozen=True)
class Plan:
    """What is filled in, and which series panels read."""

    filling: Filling
    recorded: Sequence[RecordedSeries]
    read: frozenset[Identity]


@dataclass(frozen=True)
class Block:
    """A block that was made."""

    start: int
    samples: int
    text_bytes: int


def prepare(filling: Filling, document: dict[str, Any], folder: Path) -> Plan:
    """Evaluate the rules on a small cloud, and find the series that panels read."""
    series = list(filling.cloud.condensed().series())
    end = filling.end // BLOCK_SECONDS * BLOCK_SECONDS
    small = SmallCloud(series, folder, end)
    recorded = [
        made
        for one in small.evaluate(recording_rules(document))
        for made in at_each_worker(one, filling.cloud)
    ]
    with small.prometheus() as server:
        read = frozenset(_read_series(server, end))
    return Plan(filling, recorded, read)


def identity(name: str, labels: Iterable[tuple[str, str]]) -> Identity:
    """Return a series without the labels that tell workers apart."""
    return name, frozenset(pair for pair in labels if pair[0] not in _INSTANCES)


def _read_series(server: Prometheus, end: int) -> Iterator[Identity]:
    """Yield each series that a query of a panel selects."""
    for selector in sorted(_selectors(server, end)):
        found = server.get(
            "series", {"match[]": selector, "start": end - 86400, "end": end}
        )
        for labels in found:
            name = labels.pop("__name__")
            yield identity(name, labels.items())


def _selectors(server: Prometheus, end: int) -> set[str]:
    found = set()
    for path, seconds in product(boards(), RANGES.values()):
        for panel in Opening.of(path, server, seconds, end).panels():
            for query in panel.queries:
                if query.path.startswith("query") and AT_END not in query.text:
                    found.update(_SELECTOR.findall(query.text))
                    bare = _SELECTOR.sub(" ", query.text)
                    found.update(metric_names(bare))
    return found


def fill(
    plan: Plan, folder: Path, parallel: int, report: Callable[[Block, int, int], None]
) -> list[Block]:
    """Write all blocks; `report` gets each, and how many are done and due."""
    windows = plan.filling.windows()
    blocks = []
    with ProcessPoolExecutor(parallel) as pool:
        jobs = [pool.submit(write_block, plan, one, folder) for one in windows]
        try:
            for done, job in enumerate(as_completed(jobs), 1):
                blocks.append(job.result())
                report(blocks[-1], done, len(windows))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return blocks


def write_block(plan: Plan, window: range, folder: Path) -> Block:
    """Write the samples of two hours, and make a block of them."""
    counter = Counter()
    scratch = folder / f"block-{window.start}"
    size = prometheus.create_blocks(
        counter.counted(block_lines(plan, window)), scratch, folder / "data"
    )
    return Block(window.start, counter.samples, size)


class Counter:
    """Counts the samples of text that passes."""

    def __init__(self) -> None:
        self.samples = 0

    def counted(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the text as it is."""
        for text in lines:
            self.samples += text.count("\n")
            yield text


def block_lines(plan: Plan, window: range) -> Iterator[str]:
    """Yield the text of all samples of a block, one series after the other."""
    load, filling = plan.filling.load, plan.filling
    intervals = {FINE: RECORDING_SECONDS, COARSE: COARSE_SECONDS}
    often = {end: _times(window, seconds) for end, seconds in intervals.items()}
    scraped = _times(window, filling.scrape_seconds)
    # The last scrape of the window, so that the series are there at the end.
    seldom = scraped[-1 :: -(SELDOM_SECONDS // filling.scrape_seconds)][::-1]
    for one in plan.recorded:
        is_read = identity(one.name, one.labels) in plan.read
        end = one.name.rpartition(":")[2]
        times = often.get(end, often[FINE]) if is_read else seldom
        yield _lines(one.text, one.values(load, times).tolist(), _endings(times))
    if not filling.has_raw(window):
        return
    chosen: dict[bool, list[Series]] = {False: [], True: []}
    for series in filling.cloud.series():
        read = identity(series.name, series.labels) in plan.read
        chosen[read].append(series)
        if len(chosen[read]) == CHUNK:
            yield _raw_lines(chosen[read], load, scraped if read else seldom)
            chosen[read] = []
    yield _raw_lines(chosen[True], load, scraped)
    yield _raw_lines(chosen[False], load, seldom)


def _raw_lines(series: Sequence[Series], load: Load, times: Numbers) -> str:
    normal, incident = load.seconds(times)
    endings = _endings(times)
    grown = np.outer([one.normal for one in series], normal)
    grown += np.outer([one.incident for one in series], incident)
    return "".join(
        _lines(one.text, values if one.counts else [one.normal] * len(values), endings)
        for one, values in zip(series, grown.tolist(), strict=True)
    )


def _lines(text: str, values: Sequence[float], endings: Sequence[str]) -> str:
    pairs = zip(values, endings, strict=True)
    return "".join([f"{text}{value:.12g}{ending}" for value, ending in pairs])


def _times(window: range, step: int) -> Numbers:
    return np.arange(-(-window.start // step) * step, window.stop, step, dtype=float)


def _endings(times: Numbers) -> list[str]:
    return [f" {int(time)}\n" for time in times.tolist()]
