"""The processes source: what programs use of a host, under process-exporter's names.

A process belongs to the first group whose pattern its command line has, else to the
group with the name of its program.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keylag_exporters.cgroup import read_file
from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import Option, SourceType, UnreachableError
from keylag_exporters.settings import parse_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KERNEL, OTHER = "kernel", "other"
KTHREADD_PID = 2
"""The parent of all threads of the kernel."""
KEYSTONE = "keystone=wsgi.*keystone;keystone=keystone.*wsgi"
"""The server that runs Keystone runs other services, too."""
# Fields of /proc/PID/stat, counted from the state
PARENT, MAJOR_FAULTS, USER_TICKS, SYSTEM_TICKS = 1, 9, 11, 12
START, RESIDENT_PAGES = 19, 21

_PREFIX = "namedprocess_namegroup_"
PROCESSES = f"{_PREFIX}num_procs"
RESIDENT = f"{_PREFIX}memory_bytes"
CPU = f"{_PREFIX}cpu_seconds_total"
FAULTS = f"{_PREFIX}major_page_faults_total"
# (name in /proc/PID/io, metric, help)
TRANSFERS = (
    ("read_bytes", f"{_PREFIX}read_bytes_total", "Bytes read from disks."),
    ("write_bytes", f"{_PREFIX}write_bytes_total", "Bytes to be written to disks."),
)
_GROUP = ("groupname",)

METRICS = (
    Metric(PROCESSES, "gauge", "Processes that run.", _GROUP),
    Metric(CPU, "counter", "CPU time.", (*_GROUP, "mode")),
    Metric(RESIDENT, "gauge", "Memory in use.", (*_GROUP, "memtype")),
    Metric(FAULTS, "counter", "Page faults that read from a disk.", _GROUP),
    *(Metric(name, "counter", text, _GROUP) for _, name, text in TRANSFERS),
)

Used = dict[tuple[str, ...], float]
"""What a process has used since its start, by metric and labels but the group."""


class Pattern(NamedTuple):
    """A group, and what the command lines of its processes have."""

    group: str
    command_line: re.Pattern[str]


class Process(NamedTuple):
    """A process at the time of a reading."""

    key: tuple[int, int]
    """Its pid and its start: a pid is used again."""
    program: str
    is_kernel: bool
    resident_bytes: int
    used: Used


def check_patterns(text: str) -> str:
    """Return NAME=PATTERN;NAME=PATTERN as it is; raises ValueError if it is wrong."""
    parse_patterns(text)
    return text


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Return the groups of NAME=PATTERN;NAME=PATTERN; raises ValueError."""
    return tuple(map(_pattern, filter(None, text.split(";"))))


def _pattern(text: str) -> Pattern:
    group, equals, expression = text.partition("=")
    if not (group.strip() and equals and expression):
        message = f"expected NAME=PATTERN, not {text!r}"
        raise ValueError(message)
    try:
        return Pattern(group.strip(), re.compile(expression))
    except re.error as error:
        message = f"{expression!r} is no regular expression: {error}"
        raise ValueError(message) from error


class ProcessesSource:
    """Reads the processes of one kernel."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._proc = settings["proc"]
        self._patterns = parse_patterns(settings["groups"])
        self._limit = settings["limit"]
        self._used: dict[tuple[int, int], Used] = {}
        self._groups: dict[tuple[tuple[int, int], str], str] = {}
        """Groups by process and program, which `exec` changes."""
        self._totals: defaultdict[str, Used] = defaultdict(dict)

    def collect(self) -> Families:
        """Return all families; raises UnreachableError if this is no /proc.

        Counters begin at zero, as a restart of the exporter would otherwise count all
        that processes used before.  They keep what ended processes had used.
        """
        number: Counter[str] = Counter()
        resident_bytes: Counter[str] = Counter()
        used: dict[tuple[int, int], Used] = {}
        groups: dict[tuple[tuple[int, int], str], str] = {}
        is_first = not self._used
        for one in self._processes():
            group = self._group(one)
            groups[one.key, one.program] = group
            number[group] += 1
            resident_bytes[group] += one.resident_bytes
            used[one.key] = one.used
            before = one.used if is_first else self._used.get(one.key, {})
            self._add(group, one.used, before)
        if not used:
            message = f"{self._proc} has no processes; is {self._proc} a /proc?"
            raise UnreachableError(message)
        self._used, self._groups = used, groups
        families = Families(METRICS)
        for group, total in self._totals.items():
            families.add(PROCESSES, number[group], group)
            families.add(RESIDENT, resident_bytes[group], group, "resident")
            for (name, *labels), value in total.items():
                families.add(name, value, group, *labels)
        return families

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _add(self, group: str, now: Used, before: Used) -> None:
        total = self._totals[group]
        for name, value in now.items():
            grown = max(0.0, value - before.get(name, 0.0))
            total[name] = total.get(name, 0.0) + grown

    def _group(self, process: Process) -> str:
        known = self._groups.get((process.key, process.program))
        if known is not None:
            return known
        pid, _ = process.key
        command_line = read_file(f"{self._proc}/{pid}/cmdline").replace("\0", " ")
        for one in self._patterns:
            if one.command_line.search(command_line):
                return one.group
        name = KERNEL if process.is_kernel else process.program
        # A group keeps its series: sums that lose one would go back.
        full = len(self._totals) >= self._limit and name not in self._totals
        return OTHER if full else name

    def _processes(self) -> Iterator[Process]:
        """Yield the processes that can be read; one may end meanwhile."""
        try:
            entries = list(os.scandir(self._proc))
        except OSError:
            return
        for entry in entries:
            if not entry.name.isdecimal():
                continue
            folder = entry.path
            _, _, text = read_file(f"{folder}/stat").partition(" (")
            program, _, rest = text.rpartition(") ")
            if not program:
                continue
            fields, pid = rest.split(), int(entry.name)
            is_kernel = KTHREADD_PID in (pid, int(fields[PARENT]))
            used = {
                (CPU, "user"): int(fields[USER_TICKS]) / TICKS_PER_SECOND,
                (CPU, "system"): int(fields[SYSTEM_TICKS]) / TICKS_PER_SECOND,
                (FAULTS,): float(fields[MAJOR_FAULTS]),
            }
            if not is_kernel:
                used.update(_transfers(read_file(f"{folder}/io")))
            yield Process(
                (pid, int(fields[START])),
                program,
                is_kernel,
                int(fields[RESIDENT_PAGES]) * PAGE_BYTES,
                used,
            )


def _transfers(text: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield TRANSFERS; none of a process that this one may not see."""
    found = dict(line.split(": ") for line in text.splitlines())
    for name, metric, _ in TRANSFERS:
        if name in found:
            yield (metric,), float(found[name])


SOURCE_TYPE = SourceType(
    name="processes",
    help="Read CPU time, memory and disk transfers of groups of processes. Metric names"
    " are those of process-exporter.",
    options=(
        Option("proc", "The /proc of the host.", Path, Path("/proc")),
        Option(
            "groups",
            "Groups as NAME=PATTERN, with a regular expression for the command line,"
            " separated by semicolons; other processes are grouped by program.",
            check_patterns,
            KEYSTONE,
        ),
        Option(
            "limit", "Number of programs with series of their own.", parse_count, 64
        ),
    ),
    metrics=METRICS,
    create=ProcessesSource,
    port=9256,
    interval=5.0,
)
