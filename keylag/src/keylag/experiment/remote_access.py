"""Check that a Keystone that runs already answers, and knows the users of a load."""

import csv
import socket
import time
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from itertools import combinations, islice
from pathlib import Path
from typing import Final

import requests
import urllib3
from keystoneauth1 import session as keystone_session
from keystoneauth1.exceptions import (
    ClientException,
    ConnectFailure,
    Forbidden,
    HttpServerError,
    Unauthorized,
)
from keystoneauth1.identity import v3

from keylag import load_target, users_csv
from keylag.experiment.toml_positions import Mistake
from keylag.launcher import StackError
from keylag.load_plans import LoadPlan
from keylag.load_target import LoadTarget
from keylag.server_timing import is_keylags

ANSWER_TIMEOUT_SECONDS: Final = 120.0
"""How long Keystone may take to answer after a command."""
POLL_INTERVAL_SECONDS: Final = 0.5
ASK_TIMEOUT_SECONDS: Final = 2.0
LOGIN_TIMEOUT_SECONDS: Final = 30.0
CHECKED_USERS: Final = 10
"""Users of the CSV file that log in before a run; the load logs in all of them."""
USERS_ADVICE: Final = "Create them there, with the same passwords and projects"
SERVICE_USER_ADVICE: Final = "Source the openrc file of a user who may ask"
SERVICE_USER: Final = {column: f"service_{column}" for column in users_csv.COLUMNS}
"""Property of a load plan for each column of the CSV file."""


def same_servers(urls: Mapping[str, str]) -> Iterator[Mistake]:
    """Yield the arms whose URLs lead to the server of another, by another name too.

    Two names of one address may be two Keystones behind one ingress.
    """
    servers = {name: _addresses(url) for name, url in urls.items()}
    for one, other in combinations(urls, 2):
        shared = servers[one] & servers[other]
        if shared and not _may_be_virtual_hosts(urls[one], urls[other], shared):
            reason = f"leads to the same server as arms.{one}.url, {urls[one]}"
            yield ("arms", other, "url"), reason


def _addresses(url: str) -> set[tuple[object, ...]]:
    parts = load_target.split_url(url)
    try:
        found = socket.getaddrinfo(
            parts["host"], parts["port"], type=socket.SOCK_STREAM
        )
    except OSError:
        return set()
    return {(*address[:2], parts["path_prefix"]) for *_, address in found}


def _may_be_virtual_hosts(
    one: str, other: str, shared: set[tuple[object, ...]]
) -> bool:
    names = {load_target.split_url(url)["host"] for url in (one, other)}
    addresses = {str(address) for address, *_ in shared}
    is_local = any(ip_address(address).is_loopback for address in addresses)
    return len(names) > 1 and not (is_local or names & addresses)


def check_access(url: str, target: LoadTarget, load: LoadPlan) -> None:
    """Log in as users of a load; raises StackError, with advice, if one cannot.

    These are the first users of the CSV file, and the service user if the load has one.
    """
    # The load plans do not check certificates either.
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    file = Path(target.properties["users_file"])
    _log_in(url, f"users of {file}", _read_users(file), USERS_ADVICE)
    if SERVICE_USER["username"] in load.defaults:
        values = {**load.defaults, **target.properties, **target.secrets}
        user = {column: values[name] for column, name in SERVICE_USER.items()}
        if not user["password"]:
            message = f"OS_PASSWORD is not set. {SERVICE_USER_ADVICE} {url}."
            raise StackError(message)
        _log_in(url, "service user", [user], f"{SERVICE_USER_ADVICE} this Keystone")


def _read_users(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(islice(csv.DictReader(stream), CHECKED_USERS))


def _log_in(url: str, who: str, users: list[dict[str, str]], advice: str) -> None:
    session = keystone_session.Session(verify=False, timeout=LOGIN_TIMEOUT_SECONDS)
    refused: list[str] = []
    for user in users:
        try:
            _password(url, user).get_access(session)
        except ConnectFailure as error:
            message = f"{url} does not answer: {error}. Start it, or correct the URL."
            raise StackError(message) from error
        except (Unauthorized, Forbidden) as error:
            refused.append(f"{user['username']} ({error.http_status})")
        except HttpServerError as error:
            message = f"{url} fails: {error}. See its log."
            raise StackError(message) from error
        except ClientException as error:
            message = f"{url} is no Keystone: {error}. Correct the URL."
            raise StackError(message) from error
    if refused:
        message = f"{url} refuses the {who}: {', '.join(refused)}. {advice}."
        raise StackError(message)


def _password(url: str, user: Mapping[str, str]) -> v3.Password:
    return v3.Password(
        auth_url=v3_url(url),
        username=user["username"],
        password=user["password"],
        user_domain_name=user["user_domain"],
        project_name=user["project"],
        project_domain_name=user["project_domain"],
    )


def wait_until_it_answers(url: str) -> None:
    """Wait for a Keystone; raises StackError after ANSWER_TIMEOUT_SECONDS."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_SECONDS
    while _get(url) is None:
        if time.monotonic() > deadline:
            seconds = f"{ANSWER_TIMEOUT_SECONDS:.0f} s"
            message = f"{v3_url(url)} did not answer within {seconds}"
            raise StackError(message)
        time.sleep(POLL_INTERVAL_SECONDS)


def sends_breakdowns(url: str) -> bool:
    """Return whether a Keystone answers with the Server-Timing header of Keylag."""
    answer = _get(url)
    return answer is not None and is_keylags(answer.headers.get("Server-Timing", ""))


def v3_url(url: str) -> str:
    """Return the URL of a Keystone with /v3, which it may have already."""
    return f"{url.rstrip('/').removesuffix('/v3')}/v3"


def _get(url: str) -> requests.Response | None:
    try:
        answer = requests.get(v3_url(url), timeout=ASK_TIMEOUT_SECONDS, verify=False)  # noqa: S501
    except requests.RequestException:
        return None
    return answer if answer.status_code < requests.codes.server_error else None
