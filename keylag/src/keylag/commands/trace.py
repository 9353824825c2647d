"""`keylag trace`: have OSProfiler follow one call, and show what it took."""

from pathlib import Path

import click

from keylag.commands.common import stack_folder_option
from keylag.commands.explain import call_options, show, shown_options
from keylag.services.redis import KEY_VARIABLE, PLACE_VARIABLE
from keylag.stack_folder import StackFolder
from keylag.trace import analysis, keystone, sources
from keylag.trace.calls import CALLS
from keylag.trace.model import NoTraceError, Trace, TraceError
from keylag.trace.sources.place import in_words

PATIENCE_SECONDS = sources.PATIENCE_SECONDS


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
    traced = analysis.of_trace(_read(whom.place, sent.trace_id))
    click.echo(f"Again: keylag explain {sent.trace_id}", err=True)
    show(analysis.joined(traced, sent.exchange), form, page)


def _read(place: str, trace_id: str) -> Trace:
    try:
        return sources.read_whole(place, trace_id, PATIENCE_SECONDS)
    except NoTraceError as error:
        message = (
            f"Keystone answered, and left no trace of the call in {in_words(place)}. "
            f"Look whether {KEY_VARIABLE} is one of its [profiler] hmac_keys, "
            f"{PLACE_VARIABLE} its connection_string, and enabled is true there."
        )
        raise TraceError(message) from error
