"""`keylag trace`: traces one call with OSProfiler and prints its breakdown."""

from pathlib import Path

import click

from keylag.commands.common import state_option
from keylag.commands.explain import display_options, keystone_options, show_explanation
from keylag.location import without_credentials
from keylag.services.redis import CONNECTION_VARIABLE, HMAC_KEY_VARIABLE
from keylag.stack_info import StackInfo
from keylag.trace import analysis, keystone_access, sources
from keylag.trace.calls import CALLS
from keylag.trace.model import Trace, TraceError, TraceNotFoundError

TRACE_TIMEOUT_SECONDS = sources.TRACE_TIMEOUT_SECONDS


@click.command("trace")
@click.argument("kind", metavar="CALL", type=click.Choice(list(CALLS)))
@keystone_options
@display_options
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    kind: str,
    cloud: str | None,
    url: str | None,
    form: str,
    page: Path | None,
    folder: Path,
) -> None:
    """Trace one call with OSProfiler and show its breakdown.

    CALL is password, application-credential, validate or revoke. The call is signed,
    so OSProfiler in Keystone traces this request only. For application-credential, the
    command creates an application credential and deletes it afterwards. For revoke, it
    issues a token and revokes that one.

    The call goes to the stack that `keylag up` started, or to any Keystone, selected
    as for `keylag explain`. For another Keystone, set OSPROFILER_HMAC_KEY to one of its
    [profiler] hmac_keys, and OSPROFILER_CONNECTION_STRING to its [profiler]
    connection_string.

    \b
    Examples:
      keylag trace validate
      keylag trace password --html out/trace.html
    """  # noqa: D301 - click reads a backspace
    access = keystone_access.find_keystone(StackInfo(folder), cloud, url)
    if not (access.hmac_key and access.location):
        message = (
            f"Set {HMAC_KEY_VARIABLE} and {CONNECTION_VARIABLE} to Keystone's values."
        )
        raise TraceError(message)
    sent = access.send(kind)
    traced = analysis.explain_trace(_read_trace(access.location, sent.trace_id))
    click.echo(f"To show it again: keylag explain {sent.trace_id}", err=True)
    show_explanation(analysis.add_client_view(traced, sent.exchange), form, page)


def _read_trace(location: str, trace_id: str) -> Trace:
    try:
        return sources.read_complete(location, trace_id, TRACE_TIMEOUT_SECONDS)
    except TraceNotFoundError as error:
        source = without_credentials(location)
        message = (
            f"Keystone answered, but {source} has no trace of the call. Check that "
            f"{HMAC_KEY_VARIABLE} is one of Keystone's [profiler] hmac_keys, that "
            f"{CONNECTION_VARIABLE} is its connection_string, and that enabled is true."
        )
        raise TraceError(message) from error
