"""The Keystone that a call goes to: the stack's, or any other."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from keystoneauth1.session import Session

from keylag.record import load_secrets
from keylag.services.base import HOST
from keylag.services.otel_collector import KEEPERS, traces_file
from keylag.services.redis import KEY_VARIABLE, PLACE_VARIABLE, traces_url
from keylag.stack_folder import StackFolder
from keylag.target import address
from keylag.trace.calls import Sent, send, session_of_cloud, session_of_stack
from keylag.trace.model import TraceError

_CLIENTS_OWN: Final = ("OS_CLOUD", "OS_AUTH_URL")
"""One of them is set where an OpenStack client knows its cloud without being told."""


@dataclass(frozen=True)
class Keystone:
    """A Keystone as somebody may use it."""

    session: Session
    key: str = field(repr=False)
    """What to sign a call with; empty if it is not known."""
    place: str = field(repr=False)
    """Where its traces are; empty if that is not known."""

    def send(self, kind: str, *, signed: bool = True) -> Sent:
        """Send a call of this kind; it is signed only if there is a key."""
        return send(self.session, kind, self.key if signed else "")


def found(
    stack: StackFolder,
    cloud: str | None,
    url: str | None,
    env: Mapping[str, str] | None = None,
) -> Keystone:
    """Return the Keystone that the options and the variables tell, or the stack's.

    Raises StackDownError where that is not up, TraceError where the credentials are
    not enough, and TargetError where the URL is none.
    """
    env = os.environ if env is None else env
    if cloud or url or any(env.get(name) for name in _CLIENTS_OWN):
        if url:
            address(url)
        session = session_of_cloud(cloud, url)
        return Keystone(session, env.get(KEY_VARIABLE, ""), env.get(PLACE_VARIABLE, ""))
    key = load_secrets(stack.data).profiler
    return Keystone(session_of_stack(stack), key, traces_url(stack.port("redis")))


def places_of(stack: StackFolder, env: Mapping[str, str] | None = None) -> list[str]:
    """Return where traces may be: what the variable says, then where the stack has any.

    Raises TraceError where there is neither.
    """
    env = os.environ if env is None else env
    places = dict.fromkeys([env.get(PLACE_VARIABLE, ""), *_of_stack(stack)])
    places.pop("", None)
    if not places:
        message = (
            "It is not known where traces are. Give --from, or set "
            f"{PLACE_VARIABLE} to Keystone's [profiler] connection_string."
        )
        raise TraceError(message)
    return list(places)


def _of_stack(stack: StackFolder) -> Iterator[str]:
    """Give where a stack keeps traces: OSProfiler's, then OpenTelemetry's."""
    ports = stack.ports
    if "redis" in ports:
        yield traces_url(ports["redis"])
    for name in KEEPERS:
        if name in ports:
            yield f"{name}+http://{HOST}:{ports[name]}"
    if (file := traces_file(stack.folder)).exists():
        yield str(file)
