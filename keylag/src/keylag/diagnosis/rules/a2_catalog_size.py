"""A2: the service catalog in each token is large."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import step_suspicion
from keylag.diagnosis.rule import Fix, Rule, Suspicion

STEPS: Final = ("catalog", "render")
PHASES: Final = ("render",)
"""Writing the response as JSON, which the framework does after all steps."""


def _judge(case: Case) -> Suspicion | str:
    return step_suspicion(case, STEPS, "the catalog", PHASES)


RULE: Final = Rule(
    id="A2",
    name="catalog-size",
    cause="The service catalog is large: building and sending it takes long.",
    judge=_judge,
    asks=("cache_backends",),
    fixes=(
        Fix(
            "the clients",
            "ask for ?nocatalog where they do not need it, as auth_token does with"
            " include_service_catalog = false",
            "None for clients that know their endpoints.",
        ),
        Fix(
            "the catalog",
            "remove endpoints of services and regions that are gone",
            "Clients that still use them fail.",
        ),
    ),
    gain="The time of the steps `catalog` and `render`, and of the response as JSON,"
    " beyond that of a small catalog.",
    threshold="Time beyond the expected one counts, on a machine of the same speed.",
    panel="tokens: Time per call, by category",
)
