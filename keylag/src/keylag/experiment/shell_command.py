"""Run the shell commands of a plan, which switch or restart a Keystone."""

import os
import signal
import subprocess
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Final

import click

from keylag.launcher import StackError

TIMEOUT_SECONDS: Final = 600.0
OUTPUT_SHOWN_CHARACTERS: Final = 500


def run_command(command: str) -> None:
    """Run a command of a plan; raises StackError if it fails or times out.

    Processes that a successful command leaves behind keep running: Keystone may be one
    of them.  They may keep their output open, so the output goes to a file, since a
    pipe would never end.
    """
    shell = ["sh", "-c", command]
    with TemporaryFile() as output:
        process = subprocess.Popen(
            shell,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if code := _wait_for_exit(process):
                raise subprocess.CalledProcessError(code, shell)
        except subprocess.SubprocessError as error:
            output.seek(0)
            output_text = output.read().decode(errors="replace")[
                -OUTPUT_SHOWN_CHARACTERS:
            ]
            message = f"{str(error).removesuffix('.')}. Output: {output_text}"
            raise StackError(message) from error


def _wait_for_exit(process: subprocess.Popen[bytes]) -> int:
    # A command that does not end is killed with its process group; what one that has
    # ended leaves behind keeps running.
    try:
        return _finish_on_interrupt(process)
    except BaseException:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise


def _finish_on_interrupt(process: subprocess.Popen[bytes]) -> int:
    # Ctrl-C does not reach another session, and half a restart leaves Keystone down.
    try:
        return process.wait(TIMEOUT_SECONDS)
    except KeyboardInterrupt:
        click.echo(
            "Waiting for the plan's command to end; Ctrl-C again kills it.", err=True
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(TIMEOUT_SECONDS)
        raise
