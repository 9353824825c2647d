"""Recorded metrics of one worker and of the exporters, as Prometheus' text format.

The files in `recorded/` are what one worker of a real stack exported after the calls of
a busy cloud, without the labels that say which worker it was.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

RECORDED: Final = Path(__file__).parents[1] / "recorded"
IDENTITY: Final = frozenset(
    {
        *("instance", "job", "host_name", "cluster", "region"),
        *("service_instance_id", "service_name", "keylag_run", "keylag_round"),
    }
)
"""Labels that tell workers apart; the model sets its own."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sample:
    """One recorded series, with its value after the recorded calls."""

    name: str
    labels: Labels
    counts: bool
    """Whether it is of a counter or a histogram."""
    value: float


def read_samples(text: str) -> Iterator[tuple[str, Sample]]:
    """Yield each sample with the name of its job; empty for an exporter's."""
    for family in text_string_to_metric_families(text):
        counts = family.type in {"counter", "histogram"}
        for one in family.samples:
            if not one.name.endswith("_created") and one.name != "target_info":
                kept = sorted(
                    (name, value)
                    for name, value in one.labels.items()
                    if value and name not in IDENTITY
                )
                sample = Sample(one.name, tuple(kept), counts, float(one.value))
                yield one.labels.get("job", ""), sample


def merge_workers(samples: Iterable[Sample]) -> list[Sample]:
    """Return one worker with the series of all: counters added, the last gauge."""
    merged: dict[tuple[str, Labels], Sample] = {}
    for one in samples:
        key = one.name, one.labels
        added = merged[key].value if one.counts and key in merged else 0.0
        merged[key] = Sample(*key, one.counts, one.value + added)
    return sorted(merged.values(), key=lambda one: (one.name, one.labels))


def series_text(name: str, labels: Labels) -> str:
    """Return a series as it stands before its value."""
    pairs = ",".join(
        f'{label}="{escape_label_value(value)}"' for label, value in labels
    )
    return f"{name}{{{pairs}}} "


def escape_label_value(value: str) -> str:
    """Return a label's value as the text formats write it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def save(name: str, samples: Iterable[Sample]) -> None:
    """Write a file of recorded samples."""
    RECORDED.mkdir(exist_ok=True)
    lines: list[str] = []
    types: dict[str, str] = {}
    for one in sorted(samples, key=lambda one: (_family(one), one.name, one.labels)):
        family, kind = _family(one)
        if family not in types:
            types[family] = kind
            lines.append(f"# TYPE {family} {kind}")
        lines.append(f"{series_text(one.name, one.labels)}{one.value!r}")
    text = "\n".join([*lines, ""])
    # Without a time, equal samples make equal files.
    (RECORDED / f"{name}.prom.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def load(name: str) -> list[Sample]:
    """Return the samples of a recorded file."""
    packed = (RECORDED / f"{name}.prom.gz").read_bytes()
    return [one for _, one in read_samples(gzip.decompress(packed).decode())]


def _family(sample: Sample) -> tuple[str, str]:
    """Return the name and type of the family."""
    if not sample.counts:
        return sample.name, "gauge"
    if sample.name.endswith("_total"):
        return sample.name, "counter"
    return sample.name.rpartition("_")[0], "histogram"


def count_by_metric(samples: Iterable[Sample]) -> Mapping[str, int]:
    """Return the number of series of each metric, the most first."""
    counts: dict[str, int] = {}
    for one in samples:
        counts[one.name] = counts.get(one.name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
