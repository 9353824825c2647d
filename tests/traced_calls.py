"""Calls with a trace context, and the exemplars that they leave."""

import time

import requests

from keylag.stack import Stack

TRACE, CLIENT = "5b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
"""Ids of the trace and of the client's span."""
TIMEOUT_SECONDS = 60


def log_in(stack: Stack) -> None:
    """Request a token with a traceparent header."""
    admin = stack.admin()
    domain = {"id": admin.user_domain_id}
    user = {"name": admin.username, "domain": domain, "password": admin.password}
    identity = {"methods": ["password"], "password": {"user": user}}
    requests.post(
        f"{admin.auth_url}/auth/tokens",
        json={"auth": {"identity": identity}},
        headers={"traceparent": f"00-{TRACE}-{CLIENT}-01"},
        timeout=30,
    )


def send_until_exemplar(stack: Stack) -> set[str]:
    """Send calls until one is an exemplar in Prometheus; return the ids of traces.

    One export has the exemplar; the next may replace it before a scrape.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    found: set[str] = set()
    while TRACE not in found and time.monotonic() < deadline:
        log_in(stack)
        time.sleep(0.5)
        found = _trace_ids(stack)
    return found


def _trace_ids(stack: Stack) -> set[str]:
    query = {
        "query": "http_server_request_duration_seconds_bucket",
        "start": str(time.time() - 600),
        "end": str(time.time() + 600),
    }
    url = f"{stack.url('prometheus')}/api/v1/query_exemplars"
    answer = requests.get(url, params=query, timeout=10).json()
    return {
        each["labels"]["trace_id"]
        for series in answer["data"]
        for each in series["exemplars"]
    }
