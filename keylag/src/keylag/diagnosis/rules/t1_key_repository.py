"""T1: reading the keys of tokens takes long."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    found = savings(case, lambda calls: case.excess(calls, ["token_crypto"]))
    if not found:
        return "Encoding and decoding tokens costs what it should."
    keys = case.facts.number("fernet_keys")
    if not keys:
        return "No Fernet key is reported: the tokens may be JWS."
    evidence = [Evidence("keys in the repository", keys, "keys", "fernet_keys", 3)]
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="T1",
    name="key-repository",
    cause="Reading the Fernet keys takes long: there are many, or their file system is"
    " slow.",
    judge=_judge,
    asks=("fernet_keys",),
    fixes=(
        option(
            "fernet_tokens",
            "max_active_keys = 2 + (expiration + allow_expired_window) / time between"
            " rotations",
            "Tokens that were made with a removed key are invalid; both times are in"
            " [token].",
        ),
        Fix(
            "the key repository",
            "a local file system",
            "The keys have to be copied to each node.",
        ),
    ),
    gain="The time of token crypto beyond that with few local keys.",
    threshold="Time beyond the expected one counts, on a machine of the same speed.",
    panel="workers: Fernet keys",
)
