"""`keylag trace`: have OSProfiler follow one call, and show what it took."""

from pathlib import Path

import click

from keylag.commands.common import stack_folder_option
from keylag.commands.explain import call_options, show, shown_options
from keylag.services.redis import KEY_VARIABLE, PLACE_VARIABLE
from keylag.stack_folder import StackFolder
from keylag.trace import analysis, keystone, sources
from keylag.trace.calls import CALLS
from keylag.trace.model import TraceError


@click.command("trace")
@click.argument("kind", metavar="CALL", type=click.Choice(list(CALLS)))
@call_options
@shown_options
@stack_folder_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    kind: str,
    cloud: str | None,
    url: str | None,
    form: str,
    page: Path | None,
    folder: Path,
) -> None:
    """Have OSProfiler follow one call, and show what it took.

    CALL is password, application-credential or validate. It is signed, so that
    a Keystone with OSProfiler on traces it, and no other request. An application
    credential is made for the call and deleted afterwards.

    It goes to the stack that `keylag up` started, or to any Keystone, as for
    `keylag explain`. Then OSPROFILER_HMAC_KEY is one of its [profiler] hmac_keys
    and OSPROFILER_CONNECTION_STRING its [profiler] connection_string.

    \b
    Examples:
      keylag trace validate
      keylag trace password --html out/trace.html
    """  # noqa: D301 - click reads a backspace
    whom = keystone.found(StackFolder(folder), cloud, url)
    if not (whom.key and whom.place):
        message = f"Set {KEY_VARIABLE} and {PLACE_VARIABLE} to what Keystone has."
        raise TraceError(message)
    sent = whom.send(kind)
    traced = analysis.of_trace(sources.read_whole(whom.place, sent.trace_id))
    click.echo(f"Again: keylag explain {sent.trace_id}", err=True)
    show(analysis.joined(traced, sent.exchange), form, page)
