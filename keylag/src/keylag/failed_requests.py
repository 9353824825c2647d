"""Failed requests of a load: the limit, and explanations for users."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from keylag.breakdown import Call, Run
from keylag.call_facts import call_name
from keylag.errors import KeylagError

DEFAULT_MAX_SHARE: Final = 0.05
"""Default limit of the share of failed requests."""
_FAILURES_SHOWN: Final = 3

_SHORTER_LOAD: Final = "Check them, or send a load shorter than [token] expiration."
_EXPLANATIONS: Final = {
    r"Connection refused": "Nothing listens there. Check the URL and the port.",
    r"UnknownHost": "The host name is unknown. Check the URL.",
    r"NoHttpResponse": "The server closes connections. Try --set keep_alive=false.",
    r"imed ?out|Timeout": "The server did not respond in time. Lower --set threads=.",
    r"^401 ": f"A password is wrong or a token has expired. {_SHORTER_LOAD}",
    r"^403 ": "The service user lacks the role for this call. Assign it.",
    r"^404 ": f"The path is wrong or the token has expired. {_SHORTER_LOAD}",
    r"^429 ": "A rate limit applies. Lower --set rate_per_second=.",
    r"^5": "Check the server's log.",
}
"""A pattern of code and message; the cause, and what to do."""


class TooManyFailedRequestsError(KeylagError):
    """The share of failed requests exceeds the limit."""


def check_failed_share(runs: Sequence[Run], max_share: float) -> None:
    """Raise TooManyFailedRequestsError if more than `max_share` (0 to 1) failed."""
    calls = [call for run in runs for call in run["calls"]]
    requests = sum(call["requests"] for call in calls)
    failed = sum(call["errors"] for call in calls)
    if failed > max_share * requests:
        share = f"{failed / requests:.0%}".replace("%", " %")
        first = f"{failed} of {requests} requests failed ({share}):"
        raise TooManyFailedRequestsError("\n".join([first, *_failure_lines(calls)]))


def _failure_lines(calls: Iterable[Call]) -> Iterator[str]:
    for call in calls:
        for answer, number in list(call["failures"].items())[:_FAILURES_SHOWN]:
            failure = f"  {number} {call_name(call)}: {answer}."
            yield f"{failure} {explain_failure(answer)}".rstrip()


def explain_failure(answer: str) -> str:
    """Return cause and remedy for the code and message of a response; may be empty."""
    return next(
        (text for pattern, text in _EXPLANATIONS.items() if re.search(pattern, answer)),
        "",
    )
