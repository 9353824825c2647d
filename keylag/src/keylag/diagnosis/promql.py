"""The PromQL that returns the number of evidence."""

import math
import re
from typing import Final

from keylag.diagnosis.facts import Facts
from keylag.diagnosis.reading import ROUTE
from keylag.diagnosis.rule import Evidence, PerCall

CALLS: Final = "calls"
_GROUPED: Final = re.compile(r"sum by \([^)]*\) \((.*)\)")


def is_sum(evidence: Evidence, facts: Facts) -> bool:
    """Return whether evidence is the sum of its measurement's values."""
    name = evidence.measurement
    return facts.has(name) and math.isclose(evidence.value, facts.number(name))


def evidence_query(evidence: Evidence, facts: Facts) -> str:
    """Return the query of evidence: its number, or what that is computed from.

    Empty if the facts are not from Prometheus.
    """
    query = facts.queries.get(evidence.measurement, "")
    if query and evidence.per_call:
        part = _select(query, evidence.per_call)
        whole = _select(facts.queries[CALLS], PerCall(evidence.per_call.kind))
        return f"{part} / {whole}"
    grouped = _GROUPED.fullmatch(query)
    return f"sum ({grouped[1]})" if grouped and is_sum(evidence, facts) else query


def _select(query: str, per_call: PerCall) -> str:
    """Return a query of token calls for one kind of them, without its labels."""
    method, auth_method = per_call.kind
    matchers = [
        ROUTE,
        f'http_request_method="{method}"',
        f'keystone_auth_method="{auth_method}"',
        'http_response_status_code=~"2.."',
    ]
    for label, names in (
        ("keystone_phase", per_call.phases),
        ("keystone_operation", per_call.operations),
    ):
        if names:
            matchers.append(f'{label}=~"{"|".join(names)}"')
    return _GROUPED.sub(r"sum (\1)", query).replace(ROUTE, ", ".join(matchers))
