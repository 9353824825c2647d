"""The diagnosis of what was recorded without a Prometheus, for `keylag diagnose`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from keylag.diagnosis.case import Case
from keylag.diagnosis.configuration import Configuration
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.from_call import header_facts, trace_facts
from keylag.diagnosis.from_configuration import add_configuration
from keylag.diagnosis.from_run import read_runs
from keylag.diagnosis.html import Report
from keylag.diagnosis.ranking import diagnose
from keylag.stack_info import StackInfo
from keylag.trace import keystone_access, sources
from keylag.trace.calls import CALLS
from keylag.trace.model import Trace

Function = Callable[..., Any]

SAMPLES: Final = "samples.csv"
"""What the folder of an experiment has."""
NO_CHARTS: Final = "There are no charts: only a Prometheus knows how figures changed."
STANDARD_INPUT: Final = "-"


@dataclass(frozen=True)
class Records:
    """The options that name a record; at most one of the first three is given."""

    run: Path | None
    header: str | None
    """A Server-Timing header, or - for standard input."""
    trace: str | None
    """The id of a trace, or a file."""
    store: str | None
    call: str | None
    """The kind of call of the header or trace; None to guess it."""

    @property
    def given(self) -> list[Path | str]:
        """The records that options name."""
        return [one for one in (self.run, self.header, self.trace) if one is not None]

    def reports(self, stack: Path, configuration: Configuration) -> list[Report]:
        """Return the diagnosis of each record; none if no option names one."""
        return [
            _judge(name, add_configuration(facts, configuration))
            for name, facts in self._read(stack).items()
        ]

    def _read(self, stack: Path) -> dict[str, Facts]:
        if len(self.given) > 1:
            message = "--run, --server-timing and --trace exclude each other."
            raise click.UsageError(message)
        if self.call and not (self.header or self.trace):
            message = "--call needs --server-timing or --trace."
            raise click.UsageError(message)
        if self.store and not self.trace:
            message = "--trace-store needs --trace."
            raise click.UsageError(message)
        if self.run is not None:
            return self._read_run(self.run)
        if self.header is not None:
            standard = self.header == STANDARD_INPUT
            text = sys.stdin.read() if standard else self.header
            return {"": header_facts(text, self.call)}
        if self.trace is not None:
            trace = _read_trace(self.trace, self.store, stack)
            return {"": trace_facts(trace, self.call)}
        return {}

    @staticmethod
    def _read_run(folder: Path) -> dict[str, Facts]:
        if not (folder / SAMPLES).exists():
            return read_runs(folder)
        # It imports all of `keylag experiment`, which takes longer than a diagnosis.
        from keylag.diagnosis.from_experiment import read_arms  # noqa: PLC0415

        return read_arms(folder)


def record_options(function: Function) -> Function:
    """Add the options of Records, passed as `run`, `header`, `trace` and so on."""
    for option in reversed(
        (
            click.option(
                "--run",
                type=click.Path(exists=True, path_type=Path),
                help="Folder of `keylag load`, which may still send, of `keylag demo`, "
                "or of `keylag experiment`, instead of a Prometheus.",
            ),
            click.option(
                "--server-timing",
                "header",
                metavar="HEADER",
                help="Server-Timing header of one call, or - to read it, or the whole "
                "response, from standard input.",
            ),
            click.option(
                "--trace",
                metavar="TRACE",
                help="Trace of one call: its id, or a file, as for `keylag explain`.",
            ),
            click.option(
                "--trace-store",
                "store",
                metavar="LOCATION",
                help="Where that trace is stored, as --from of `keylag explain`.",
            ),
            click.option(
                "--call",
                type=click.Choice(list(CALLS)),
                help="Kind of that call.  [default: what its breakdown looks like]",
            ),
        )
    ):
        function = option(function)
    return function


def _judge(name: str, facts: Facts) -> Report:
    diagnosis = diagnose(Case(facts, Expected.shipped(facts)))
    return Report(name, diagnosis, no_charts=NO_CHARTS)


def _read_trace(trace: str, store: str | None, folder: Path) -> Trace:
    if Path(trace).is_file():
        return sources.read_trace(trace)
    stack = StackInfo(folder)
    locations = [store] if store else keystone_access.trace_locations(stack)
    return sources.read_first(locations, trace)
