"""Shell completion as the how-to describes it, and manual pages."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag.cli import COMMANDS
from keylag.paths import CHECKOUT
from keylag_dev.man_pages import command

HOW_TO = (CHECKOUT / "docs" / "how-to" / "shell.md").read_text(encoding="utf-8")
PROGRAMS = Path(sys.executable).parent
COMPLETE = """\
PATH={programs}:$PATH
{lines}
COMP_WORDS=({words}); COMP_CWORD={last}
$(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/') {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(words: str) -> set[str]:
    """Return bash's completions of the last word, with the how-to's set-up."""
    found = re.search(r"```bash\n(.*?)```", HOW_TO, re.DOTALL)
    assert found
    program, *more = words.split(" ")
    script = COMPLETE.format(
        programs=PROGRAMS,
        lines=found[1],
        words=words,
        last=len(more),
        program=program,
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, check=True, text=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("keylag ex", {"explain", "experiment"}),
        ("keylag up --new", {"--new-ports"}),
        ("keylag experiment co", {"compare"}),
        ("keylag-exporter mem", {"memcached"}),
    ],
)
def test_bash_completes_commands_and_options(words: str, completions: set[str]) -> None:
    assert completed(words) == completions


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize("program", ["keylag", "keylag-exporter"])
def test_other_shells_get_a_completion_script(shell: str, program: str) -> None:
    name = f"_{program.upper().replace('-', '_')}_COMPLETE"
    assert f"{name}={shell}_source {program}" in HOW_TO
    script = subprocess.run(
        [PROGRAMS / program],
        env={**os.environ, name: f"{shell}_source"},
        capture_output=True,
        check=True,
        text=True,
    ).stdout

    assert f"{name}={shell}_complete" in script


def test_each_command_has_a_manual_page(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path)])
    pages = {page.stem for page in tmp_path.glob("*.1")}
    text = (tmp_path / "keylag-up.1").read_text(encoding="utf-8")

    assert result.exit_code == 0
    assert pages >= {f"keylag-{name}" for name in COMMANDS}
    assert {"keylag", "keylag-exporter", "keylag-experiment-run"} < pages
    assert ".nf\nExamples:\n  keylag up --cache memcache_pool\n" in text
    assert "\x08" not in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="not installed: groff")
def test_manual_pages_render_without_warnings(tmp_path: Path) -> None:
    CliRunner().invoke(command, [str(tmp_path)])
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-K", "utf8", "-ww", *tmp_path.glob("*.1")],
        capture_output=True,
        check=True,
        text=True,
    )

    assert done.stderr == ""
    assert "keylag up --cache memcache_pool\n" in done.stdout
