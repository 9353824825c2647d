"""Requests that failed: how many are too many, and what to do about them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from keylag.advice import title
from keylag.breakdown import Call, Run
from keylag.errors import KeylagError

MOST: Final = 0.05
"""Share of a load's requests that may fail, unless one says otherwise."""
_SHOWN: Final = 3

_EXPIRED: Final = "a load has to end before its first tokens do ([token] expiration)."
_MEANINGS: Final = {
    r"Connection refused": "Nothing listens there; look at the URL and the port.",
    r"UnknownHost": "That name is not known; look at the URL.",
    r"NoHttpResponse": "The server closes connections: --set keep_alive=false.",
    r"imed ?out|Timeout": "No answer in time; send less, with --set threads=.",
    r"^401 ": f"A password is wrong, or a token has expired: {_EXPIRED}",
    r"^403 ": "The service user lacks the role that this call needs.",
    r"^404 ": f"The path is wrong, or the token asked about has expired: {_EXPIRED}",
    r"^429 ": "Something limits the rate; send less, with --set rate_per_second=.",
    r"^5": "Look into the server's log.",
}
"""What an answer looks like, what it means, and what to do."""


class TooManyFailedError(KeylagError):
    """More requests failed than may; the text says how, and what to do."""


def check(runs: Sequence[Run], most: float) -> None:
    """Raise TooManyFailedError if more than a share of all requests failed."""
    calls = [call for run in runs for call in run["calls"]]
    requests = sum(call["requests"] for call in calls)
    failed = sum(call["errors"] for call in calls)
    if failed > most * requests:
        share = f"{failed / requests:.0%}".replace("%", " %")
        first = f"{failed} of {requests} requests failed ({share}):"
        raise TooManyFailedError("\n".join([first, *_lines(calls)]))


def _lines(calls: Iterable[Call]) -> Iterator[str]:
    for call in calls:
        for answer, number in list(call["failures"].items())[:_SHOWN]:
            yield f"  {number} {title(call)}: {answer}. {meaning(answer)}".rstrip()


def meaning(answer: str) -> str:
    """Say what a failed request's answer, code and message, means."""
    return next(
        (text for form, text in _MEANINGS.items() if re.search(form, answer)), ""
    )
