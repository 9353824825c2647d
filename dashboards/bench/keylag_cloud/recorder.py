"""Records the series of a busy worker from a stack that runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.request import urlopen

from keylag_cloud import exposition
from keylag_cloud.exposition import Sample

KINDS: Final = {"keystone": "keystone", "keylag-service": "service", "": "exporters"}
"""The file that the samples of a job are recorded in."""
TIMEOUT_SECONDS: Final = 60


def record(urls: Iterable[str]) -> Mapping[str, int]:
    """Record what the metrics pages have; return the number of series of each file."""
    found = defaultdict[str, list[Sample]](list)
    for url in urls:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as page:  # noqa: S310 - click checks it
            for job, sample in exposition.read_samples(page.read().decode()):
                found[KINDS[job]].append(sample)
    counts = {}
    for name, samples in found.items():
        merged = exposition.merge_workers(samples)
        exposition.save(name, merged)
        counts[name] = len(merged)
    return counts
