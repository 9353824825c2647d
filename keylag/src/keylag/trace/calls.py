"""Sends single token calls, as OpenStack clients do, and measures them.

openstacksdk loads the credentials.  keystoneauth sends the requests, and signs those
that OSProfiler traces.
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
from keylag.stack_info import StackInfo
from keylag.trace.http_exchange import HttpExchange, TimingAdapter
from keylag.trace.model import TraceError

_ERROR_ADVICE: Final[Mapping[type[ClientException], str]] = {
    SSLError: (
        "{reason}. For a private certificate authority, set OS_CACERT, or cacert in "
        "clouds.yaml, to its file."
    ),
    ConnectFailure: ("{reason}. Check the URL, and that Keystone runs there."),
    Unauthorized: (
        "it rejects the credentials (HTTP 401). Check the user, the password, the "
        "project and their domains in clouds.yaml or in the OS_* variables. If openrc "
        "has changed, source openrc again."
    ),
    ClientException: "{error}",
}
"""Reason and advice by exception; the first matching class applies."""

# Its warnings repeat the error.
logging.getLogger("keystoneauth").setLevel(logging.ERROR)


@dataclass(frozen=True)
class SentCall:
    """A call that Keystone has answered."""

    exchange: HttpExchange
    trace_id: str
    """Id of its trace; empty if the call was not signed."""


def stack_session(stack: StackInfo) -> Session:
    """Return a session of a stack's administrator.

    Raises StackDownError if its Keystone does not run, and TraceError while `keylag up`
    still runs.
    """
    stack.require_keystone("give --url or --cloud")
    file = stack.folder / "clouds.yaml"
    if not file.exists():
        message = (
            f"The stack in {stack.folder} is still starting: wait for `keylag up`."
        )
        raise TraceError(message)
    files = [str(file)]
    return _open_session(
        OpenStackConfig(config_files=files, load_envvars=False), "keylag"
    )


def cloud_session(cloud: str | None, url: str | None) -> Session:
    """Return a session with the credentials of clouds.yaml or the OS_* variables.

    `url` overrides their authentication URL.  Raises TraceError if they are incomplete.
    """
    try:
        more = {"auth": {"auth_url": url}} if url else {}
        return _open_session(OpenStackConfig(), cloud, **more)
    except (ConfigException, ClientException) as error:
        message = (
            f"The credentials are incomplete: {error} Set OS_CLOUD, or OS_USERNAME, "
            "OS_PASSWORD and so on, as for the `openstack` command."
        )
        raise TraceError(message) from error


def _open_session(config: OpenStackConfig, cloud: str | None, **more: Any) -> Session:
    session: Session = config.get_one(cloud, **more).get_session()
    return session


def send_call(session: Any, kind: str, hmac_key: str = "") -> SentCall:
    """Send a call; `kind` is a key of CALLS.  An HMAC key signs it for OSProfiler.

    Authentication happens before, so that only the call is measured and traced.
    Raises TraceError if Keystone does not answer, or answers with an error.
    """
    adapter = TimingAdapter()
    for scheme in ("http://", "https://"):
        session.session.mount(scheme, adapter)
    call, credentials = CALLS[kind]
    try:
        with credentials(session) as user:
            user.auth.get_access(user)
            with _sign_requests(hmac_key) as trace_id:
                call(user)
                return SentCall(adapter.exchanges[-1], trace_id)
    except ClientException as error:
        template = next(
            text for kind, text in _ERROR_ADVICE.items() if isinstance(error, kind)
        )
        reason = template.format(error=error, reason=root_cause(error))
        message = f"The call to Keystone at {session.auth.auth_url} failed: {reason}"
        raise TraceError(message) from error


@contextmanager
def _sign_requests(hmac_key: str) -> Iterator[str]:
    """Yield the id of the trace; empty without a key."""
    if not hmac_key:
        yield ""
        return
    point = profiler.init(hmac_key)
    try:
        yield point.get_base_id()
    finally:
        profiler.clean()


def _issue_token(session: Any) -> None:
    session.auth.invalidate()
    session.auth.get_access(session)


def _validate_token(session: Any) -> None:
    # Every user may validate their own token.
    token = session.get_token()
    session.get(f"{_v3_url(session)}/auth/tokens", headers={"X-Subject-Token": token})


def _revoke_token(session: Any) -> None:
    # Its own, which nothing else uses.
    token = session.get_token()
    try:
        session.delete(
            f"{_v3_url(session)}/auth/tokens", headers={"X-Subject-Token": token}
        )
    finally:
        session.auth.invalidate()


@contextmanager
def _new_token(session: Any) -> Iterator[Any]:
    """Yield a session that has no token yet, so that it gets one of its own."""
    session.auth.invalidate()
    yield session


def _v3_url(session: Any) -> str:
    return f"{session.auth.auth_url.rstrip('/').removesuffix('/v3')}/v3"


@contextmanager
def _any_credentials(session: Session) -> Iterator[Session]:
    yield session


@contextmanager
def _with_password(session: Any) -> Iterator[Any]:
    if isinstance(session.auth, v3.ApplicationCredential):
        message = (
            "The credentials are an application credential; this call needs a password."
        )
        raise TraceError(message)
    yield session


@contextmanager
def _with_application_credential(session: Any) -> Iterator[Any]:
    """Yield a session with the user's application credential, or a temporary one."""
    if isinstance(session.auth, v3.ApplicationCredential):
        yield session
        return
    url = f"{_v3_url(session)}/users/{session.get_user_id()}/application_credentials"
    body = {"application_credential": {"name": f"keylag {token_hex(8)}"}}
    credential = session.post(url, json=body).json()["application_credential"]
    auth = v3.ApplicationCredential(
        _v3_url(session),
        application_credential_id=credential["id"],
        application_credential_secret=credential["secret"],
    )
    try:
        yield Session(auth, session.session, verify=session.verify, cert=session.cert)
    finally:
        session.delete(f"{url}/{credential['id']}")


CALLS: Final[Mapping[str, tuple[Callable[[Any], None], Callable[[Any], Any]]]] = {
    "password": (_issue_token, _with_password),
    "application-credential": (_issue_token, _with_application_credential),
    "validate": (_validate_token, _any_credentials),
    "revoke": (_revoke_token, _new_token),
}
"""Kinds of calls: the function that sends it, and its credentials."""
