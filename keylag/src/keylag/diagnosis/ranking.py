"""Judges a case by all rules, explains away symptoms, and ranks what remains."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import Facts, Kind, MissingSourceError, ratio
from keylag.diagnosis.failing import Failing, find_failing
from keylag.diagnosis.quantile_shares import doubles_p95
from keylag.diagnosis.registry import RULES
from keylag.diagnosis.rule import MATTERS, Rule, Suspicion
from keylag.diagnosis.service_requests import find_service_kind
from keylag.diagnosis.unexplained import Unexplained, find_unexplained

MAY_COST_MORE: Final = ("H2", "W1", "W2", "N1", "M1", "M2")
"""Symptoms that may cost more than their cause: waits, which grow faster, and the time
of services."""


@dataclass(frozen=True)
class Reason:
    """Why a rule is no finding."""

    rule: Rule
    why: str
    cost: float = 0.0
    """Seconds per second that it seems to cost, at least."""
    share: float = 0.0
    """The largest share of a kind of calls that it seems to cost, at least."""


@dataclass(frozen=True)
class Finding:
    """A cause with what it costs; costs are per second of the window."""

    rule: Rule
    suspicion: Suspicion
    cost: float
    """Seconds per second: what calls would save, or what it takes of the workers."""
    least_cost: float
    """The same with the lower bounds of savings; findings are ranked by it."""
    most_cost: float
    """The same with the upper bounds."""
    shares: dict[Kind, float]
    """Share of the mean call of each kind."""
    explained: Sequence[Reason] = ()
    """Causes that are only symptoms of this one."""

    @property
    def cause(self) -> str:
        """The cause in one sentence."""
        return self.suspicion.cause or self.rule.cause

    @property
    def share(self) -> float:
        """The largest share of a kind of calls."""
        return max(self.shares.values(), default=0.0)


@dataclass(frozen=True)
class Diagnosis:
    """The findings, the most expensive first, and all other causes."""

    case: Case
    rules: Sequence[Rule]
    """All causes that were judged."""
    findings: Sequence[Finding]
    unknown: Sequence[Reason]
    """Rules whose source is missing."""
    unlikely: Sequence[Reason]

    @property
    def facts(self) -> Facts:
        """What was measured."""
        return self.case.facts

    @cached_property
    def unexplained(self) -> Sequence[Unexplained]:
        """The kinds of calls that are slow beyond what the findings cost."""
        if any(one.suspicion.worker_seconds for one in self.findings):
            # All calls wait for workers, and how long is unknown.
            return ()
        explained: dict[Kind, float] = defaultdict(float)
        for one in self.findings:
            for kind, saving in one.suspicion.savings.items():
                explained[kind] += saving.high
        return tuple(find_unexplained(self.case, explained))

    @cached_property
    def failing(self) -> Sequence[Failing]:
        """The kinds of calls of which many fail, with a finding or without."""
        return tuple(find_failing(self.facts))

    @property
    def is_open(self) -> bool:
        """Return whether calls are slow or fail for a reason that is not known."""
        return bool(self.unexplained or self.failing)

    @property
    def is_healthy(self) -> bool:
        """Return whether calls ended, without a cause, and none slow or failing."""
        return not (self.findings or self.is_open) and bool(self.facts.calls)

    def runner_up(self, finding: Finding) -> Reason | None:
        """Return the next cause and why it is behind; None if no other costs time."""
        rank = self.findings.index(finding) + 1
        if rank < len(self.findings):
            second = self.findings[rank]
            why = (
                f"It costs {second.least_cost:.3f} s/s at least, and"
                f" {finding.rule.name} {finding.least_cost:.3f} s/s."
            )
            return Reason(second.rule, why, second.least_cost)
        others = [one for one in (*finding.explained, *self.unlikely) if one.cost]
        return max(others, key=lambda one: one.cost, default=None)


def diagnose(case: Case, rules: Sequence[Rule] = tuple(RULES.values())) -> Diagnosis:
    """Return what slows the token calls of a case."""
    suspects: list[Finding] = []
    unknown: list[Reason] = []
    unlikely: list[Reason] = []
    for rule in rules:
        try:
            judged = rule.judge(case)
        except MissingSourceError as missing:
            unknown.append(Reason(rule, str(missing)))
            continue
        if isinstance(judged, str):
            unlikely.append(Reason(rule, judged))
            continue
        found = weigh(case.facts, rule, judged)
        if found.share >= MATTERS or doubles_p95(case, judged.savings):
            suspects.append(found)
        else:
            why = (
                f"It costs {found.share:.0%} of a call; a finding costs {MATTERS:.0%},"
                " or doubles a p95."
            )
            unlikely.append(Reason(rule, why, found.least_cost, found.share))
    findings = _without_symptoms(suspects)
    return Diagnosis(case, rules, findings, unknown, unlikely)


def weigh(facts: Facts, rule: Rule, suspicion: Suspicion) -> Finding:
    """Return what a suspicion costs."""
    cost = least = most = 0.0
    shares: dict[Kind, float] = {}
    for kind, saving in suspicion.savings.items():
        calls = facts.find(kind) or find_service_kind(facts, kind)
        rate, whole = (calls.per_second, calls.seconds) if calls else (0.0, 0.0)
        cost += rate * saving.mid
        least += rate * saving.low
        most += rate * saving.high
        shares[kind] = min(ratio(saving.low, whole), 1.0)
    worker_seconds = suspicion.worker_seconds
    if worker_seconds is not None:
        cost, least, most = (one + worker_seconds for one in (cost, least, most))
        busy = max(facts.busy_seconds, worker_seconds)
        shares["workers", ""] = ratio(worker_seconds, busy)
    return Finding(rule, suspicion, cost, least, most, shares)


def _without_symptoms(suspects: Sequence[Finding]) -> list[Finding]:
    """Return the causes by cost; those that another one explains become its reasons."""
    ranked = sorted(suspects, key=lambda one: -one.least_cost)
    costs = {one.rule.id: one.least_cost for one in ranked}
    explained_by = {
        symptom: cause.rule.id
        for cause in reversed(ranked)
        for symptom in cause.rule.explains
        if symptom in costs and _explains(cause, RULES[symptom], costs[symptom])
    }

    def root(symptom: str) -> str:
        cause = explained_by[symptom]
        return root(cause) if cause in explained_by else cause

    return [
        replace(
            one,
            explained=tuple(
                _explained(RULES[symptom], one.rule, costs[symptom])
                for symptom in explained_by
                if root(symptom) == one.rule.id
            ),
        )
        for one in ranked
        if one.rule.id not in explained_by
    ]


def _explains(cause: Finding, symptom: Rule, cost: float) -> bool:
    """Return whether a cause explains a symptom of this cost.

    Of two that explain each other the more expensive one is the cause.  Otherwise the
    symptom costs as much as the cause at most, unless it is one of MAY_COST_MORE.
    """
    if cause.rule.id in symptom.explains:
        return cause.least_cost > cost
    return symptom.id in MAY_COST_MORE or cost <= cause.most_cost


def _explained(symptom: Rule, cause: Rule, cost: float) -> Reason:
    why = f"It costs {cost:.3f} s/s at least, and {cause.name} explains it."
    return Reason(symptom, why, cost)
