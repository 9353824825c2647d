"""What is said of a run without a finding, and of causes that cannot be judged."""

from typing import Final

from keylag.breakdown import Run
from keylag.call_facts import largest_parts
from keylag.diagnosis.document import missing_sources
from keylag.diagnosis.ranking import Diagnosis
from keylag.diagnosis.wording import has_time, no_cause, open_questions
from keylag.run_environment import is_service_load

SERVICE_LOAD: Final = (
    "The causes are those of Keystone's token calls, and this load calls a service."
    " Whether the service's token cache slows it (M1, M2) is unknown: with metrics of"
    " keylag-otel inside the service, `keylag diagnose --since 15m` judges that."
)
OTHER_ROUTES: Final = (
    "The causes are those of Keystone's token calls, and none was measured."
)
NOTHING_FOUND: Final = "Nothing stands out: no cause that a load shows was found."
NOT_MEASURED: Final = "No call was measured, so the cause is unknown."


def conclusion(run: Run, diagnosis: Diagnosis) -> list[str]:
    """Return what is said of a run; nothing if there are findings."""
    if diagnosis.findings:
        return []
    parts = largest_parts(run)
    if not parts:
        return [NOT_MEASURED]
    return [*_judgement(run, diagnosis), *parts]


def _judgement(run: Run, diagnosis: Diagnosis) -> list[str]:
    if diagnosis.is_open:
        return [*open_questions(diagnosis)]
    if has_time(diagnosis.facts):
        return [no_cause(diagnosis)]
    if diagnosis.facts.calls:
        return [NOTHING_FOUND]
    if is_service_load(run["environment"]):
        return [SERVICE_LOAD]
    return [OTHER_ROUTES]


def not_judged(diagnosis: Diagnosis) -> list[str]:
    """Return which causes cannot be judged, and what installs their sources."""
    if has_time(diagnosis.facts):
        return [
            f"{', '.join(ids)}: no {name}; it needs {install}."
            for name, install, ids in missing_sources(diagnosis)
        ]
    ids = ", ".join(one.rule.id for one in diagnosis.unknown)
    if not (ids and diagnosis.facts.calls):
        return []
    without = (
        f"{ids}: a load has no metrics that tell. With them in a Prometheus, `keylag"
        " diagnose --since 15m` judges these causes."
    )
    return [without]
