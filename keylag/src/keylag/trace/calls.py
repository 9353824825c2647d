"""Token calls to be followed: sent once, as any OpenStack client sends them.

Credentials come from openstacksdk's own loader; keystoneauth sends the requests,
and signs those that OSProfiler is to trace.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from keystoneauth1.exceptions import (
    ClientException,
    ConnectFailure,
    SSLError,
    Unauthorized,
)
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack.config import OpenStackConfig
from openstack.exceptions import ConfigException
from osprofiler import profiler

from keylag.errors import root_cause
from keylag.stack_folder import StackFolder
from keylag.trace.exchange import Exchange, Stopwatch
from keylag.trace.model import TraceError

_REFUSED: Final[Mapping[type[ClientException], str]] = {
    SSLError: (
        "{reason}. If the certificate is from an authority of your own, name its file "
        "in OS_CACERT, or as cacert in clouds.yaml."
    ),
    ConnectFailure: (
        "{reason}. Look whether the address is right and Keystone runs there."
    ),
    Unauthorized: (
        "it knows no such user with this password, or not in this project (HTTP 401). "
        "Look at the user, the password, the project and their domains, in clouds.yaml "
        "or the OS_* variables; after a change of either, source openrc again."
    ),
    ClientException: "{error}",
}
"""Why a call failed and what to do, the first kind that fits."""

# Its warnings say what the error says afterwards.
logging.getLogger("keystoneauth").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Sent:
    """A call that was answered."""

    exchange: Exchange
    trace_id: str
    """Empty if it was not signed."""


def session_of_stack(stack: StackFolder) -> Session:
    """Return a session of a stack's administrator.

    Raises StackDownError if its Keystone does not run, TraceError if it is not ready.
    """
    stack.require_keystone("give --url or --cloud")
    file = stack.folder / "clouds.yaml"
    if not file.exists():
        message = (
            f"The stack in {stack.folder} is not ready: `keylag up` has not ended."
        )
        raise TraceError(message)
    files = [str(file)]
    return _session(OpenStackConfig(config_files=files, load_envvars=False), "keylag")


def session_of_cloud(cloud: str | None, url: str | None) -> Session:
    """Return a session by clouds.yaml or the OS_* variables, perhaps at another URL.

    Raises TraceError where they are not enough.
    """
    try:
        more = {"auth": {"auth_url": url}} if url else {}
        return _session(OpenStackConfig(), cloud, **more)
    except (ConfigException, ClientException) as error:
        message = (
            f"There are no credentials: {error} Set OS_CLOUD or OS_USERNAME, "
            "OS_PASSWORD, ..., as for the openstack command."
        )
        raise TraceError(message) from error


def _session(config: OpenStackConfig, cloud: str | None, **more: Any) -> Session:
    session: Session = config.get_one(cloud, **more).get_session()
    return session


def send(session: Any, kind: str, key: str = "") -> Sent:
    """Send a call of a kind of CALLS; with a key it is signed, to be traced.

    The user gets a token first, unsigned, so that the call itself is just that.
    Raises TraceError if Keystone does not answer as it should.
    """
    stopwatch = Stopwatch()
    for scheme in ("http://", "https://"):
        session.session.mount(scheme, stopwatch)
    call, able = CALLS[kind]
    try:
        with able(session) as user:
            user.auth.get_access(user)
            with _signing(key) as trace_id:
                call(user)
                return Sent(stopwatch.exchanges[-1], trace_id)
    except ClientException as error:
        said = next(text for kind, text in _REFUSED.items() if isinstance(error, kind))
        why = said.format(error=error, reason=root_cause(error))
        message = f"Keystone at {session.auth.auth_url} did not answer the call: {why}"
        raise TraceError(message) from error


@contextmanager
def _signing(key: str) -> Iterator[str]:
    """Have keystoneauth sign what it sends; gives the trace's id."""
    if not key:
        yield ""
        return
    point = profiler.init(key)
    try:
        yield point.get_base_id()
    finally:
        profiler.clean()


def _issue(session: Any) -> None:
    """Get a token."""
    session.auth.invalidate()
    session.auth.get_access(session)


def _validate(session: Any) -> None:
    """Validate the user's own token, which everybody may."""
    token = session.get_token()
    session.get(f"{_v3(session)}/auth/tokens", headers={"X-Subject-Token": token})


def _v3(session: Any) -> str:
    """Return where Keystone is, with the version that may be left out."""
    return f"{session.auth.auth_url.rstrip('/').removesuffix('/v3')}/v3"


@contextmanager
def _any(session: Session) -> Iterator[Session]:
    yield session


@contextmanager
def _with_password(session: Any) -> Iterator[Any]:
    if isinstance(session.auth, v3.ApplicationCredential):
        message = "These credentials are an application credential, not a password."
        raise TraceError(message)
    yield session


@contextmanager
def _with_application_credential(session: Any) -> Iterator[Any]:
    """Give a user of the one there is, or of one that is deleted afterwards."""
    if isinstance(session.auth, v3.ApplicationCredential):
        yield session
        return
    url = f"{_v3(session)}/users/{session.get_user_id()}/application_credentials"
    wanted = {"application_credential": {"name": f"keylag {token_hex(8)}"}}
    credential = session.post(url, json=wanted).json()["application_credential"]
    auth = v3.ApplicationCredential(
        _v3(session),
        application_credential_id=credential["id"],
        application_credential_secret=credential["secret"],
    )
    try:
        yield Session(auth, session.session, verify=session.verify, cert=session.cert)
    finally:
        session.delete(f"{url}/{credential['id']}")


CALLS: Final[Mapping[str, tuple[Callable[[Any], None], Callable[[Any], Any]]]] = {
    "password": (_issue, _with_password),
    "application-credential": (_issue, _with_application_credential),
    "validate": (_validate, _any),
}
"""The kinds of calls: what sends it, and what has the credentials for it."""
