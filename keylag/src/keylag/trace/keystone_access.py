"""Selects the Keystone for a call: the stack's, or any other."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from keystoneauth1.session import Session

from keylag.load_target import split_url
from keylag.services.base import HOST
from keylag.services.otel_collector import TRACE_STORES, traces_file
from keylag.services.redis import CONNECTION_VARIABLE, HMAC_KEY_VARIABLE, traces_url
from keylag.stack_info import StackInfo
from keylag.stack_record import load_secrets
from keylag.trace.calls import SentCall, cloud_session, send_call, stack_session
from keylag.trace.model import TraceError

_CLIENT_VARIABLES: Final = ("OS_CLOUD", "OS_AUTH_URL")
"""Variables that select a cloud for OpenStack clients."""


@dataclass(frozen=True)
class KeystoneAccess:
    """A session with a Keystone, and access to its traces."""

    session: Session
    hmac_key: str = field(repr=False)
    """Key that signs calls for OSProfiler; empty if unknown."""
    location: str = field(repr=False)
    """Connection string of its OSProfiler traces; empty if unknown."""

    def send(self, kind: str, *, signed: bool = True) -> SentCall:
        """Send a call; `kind` is a key of calls.CALLS.  Raises TraceError."""
        return send_call(self.session, kind, self.hmac_key if signed else "")


def find_keystone(
    stack: StackInfo,
    cloud: str | None,
    url: str | None,
    env: Mapping[str, str] | None = None,
) -> KeystoneAccess:
    """Return the Keystone that options or variables select, else the stack's.

    Raises StackDownError if the stack's Keystone does not run, TraceError for
    incomplete credentials, and TargetError for an invalid URL.
    """
    env = os.environ if env is None else env
    if cloud or url or any(env.get(name) for name in _CLIENT_VARIABLES):
        if url:
            split_url(url)
        session = cloud_session(cloud, url)
        return KeystoneAccess(
            session, env.get(HMAC_KEY_VARIABLE, ""), env.get(CONNECTION_VARIABLE, "")
        )
    hmac_key = load_secrets(stack.data).profiler
    return KeystoneAccess(
        stack_session(stack), hmac_key, traces_url(stack.port("redis"))
    )


def trace_locations(
    stack: StackInfo, env: Mapping[str, str] | None = None
) -> list[str]:
    """Return locations of traces: that of the variable, then those of the stack.

    Raises TraceError if there is none.
    """
    env = os.environ if env is None else env
    locations = dict.fromkeys(
        [env.get(CONNECTION_VARIABLE, ""), *_stack_locations(stack)]
    )
    locations.pop("", None)
    if not locations:
        message = (
            "The location of traces is unknown. Use --from, or set "
            f"{CONNECTION_VARIABLE} to Keystone's [profiler] connection_string."
        )
        raise TraceError(message)
    return list(locations)


def _stack_locations(stack: StackInfo) -> Iterator[str]:
    ports = stack.ports
    if "redis" in ports:
        yield traces_url(ports["redis"])
    for name in TRACE_STORES:
        if name in ports:
            yield f"{name}+http://{HOST}:{ports[name]}"
    if (file := traces_file(stack.folder)).exists():
        yield str(file)
