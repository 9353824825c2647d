"""The diagnosis of a window of Prometheus, for `keylag diagnose`."""

import json
import time
from dataclasses import dataclass, replace

import click

from keylag.diagnosis.configuration import Configuration
from keylag.diagnosis.facts import Window
from keylag.diagnosis.from_configuration import add_configuration
from keylag.diagnosis.from_prometheus import read_case
from keylag.diagnosis.html import Report
from keylag.diagnosis.prometheus import Prometheus, PrometheusError
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.diagnosis.trends import read_trends


@dataclass(frozen=True)
class Metrics:
    """A Prometheus, which of its series count, and Keystone's configuration."""

    server: Prometheus
    matchers: str
    configuration: Configuration

    def judge(self, window: Window, baseline: float | None = None) -> Diagnosis:
        """Return the diagnosis of a window; `baseline` is the end of another one."""
        case = read_case(self.server, window, self.matchers, baseline)
        facts = add_configuration(case.facts, self.configuration)
        return diagnose(replace(case, facts=facts))

    def judge_latest(self, seconds: float) -> Diagnosis:
        """Return the diagnosis of a window that ends now."""
        end = time.time()
        return self.judge(Window(end - seconds, end))

    def report(self, diagnosis: Diagnosis, *, charts: bool) -> Report:
        """Return a diagnosis for the output, with charts if Prometheus has them."""
        report = Report("", diagnosis)
        if not charts:
            return report
        try:
            trends = read_trends(self.server, diagnosis, self.matchers)
        except PrometheusError as error:
            return replace(report, no_charts=f"There are no charts: {error}")
        return replace(report, trends=trends)


def parse_matcher(text: str) -> str:
    """Return PromQL for LABEL=VALUE."""
    label, separator, value = text.partition("=")
    if not (separator and label.isidentifier()):
        message = f"--match {text} is not LABEL=VALUE, such as cluster=one."
        raise click.UsageError(message)
    return f"{label}={json.dumps(value, ensure_ascii=False)}"


def parse_window(start: float, end: float) -> Window:
    """Return a window; raises click.UsageError if it ends before it starts."""
    if start >= end:
        message = "The window ends before it starts: check --from and --to."
        raise click.UsageError(message)
    return Window(start, end)
