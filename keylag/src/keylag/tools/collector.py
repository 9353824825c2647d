"""The OpenTelemetry Collector: found on the PATH, or made by its official builder."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from keylag.state import CHECKOUT, DEPLOY
from keylag.tools.base import Build, Tool, ToolError
from keylag.tools.venvs import fill

MANIFEST = DEPLOY / "otel-collector" / "builder.yaml"
REPLACED = DEPLOY / "otel-collector" / "prometheus"
"""Stands for a Go module of which the Collector needs one function."""
BUILDER = "go.opentelemetry.io/collector/cmd/builder"
NEEDED_GO = (1, 25)
"""What the collector's own modules ask for."""
NEEDED_PARTS = ("otlp", "memory_limiter", "prometheus", "file", "health_check")
"""The parts that deploy/otel-collector/*.yaml use, as `components` lists them."""
ANSWER_SECONDS = 20


def has_parts(program: Path) -> bool:
    """Tell whether a collector found on the PATH has every part that we use."""
    listed = _output([str(program), "components"])
    names = set(re.findall(r"name:\s*(\S+)", listed))
    return names.issuperset(NEEDED_PARTS)


def go_version(text: str) -> tuple[int, int]:
    """Read major and minor out of `go version`; (0, 0) if it says something else."""
    found = re.search(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def collector_version(manifest: str) -> str:
    """Return the version that the manifest gives, which the builder has to have too."""
    found = re.search(r"^\s+version: (\S+)$", manifest, re.MULTILINE)
    if found is None:
        message = f"{MANIFEST} has no version"
        raise ToolError(message)
    return found[1]


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _go(build: Build) -> Path:
    """Return a Go that is new enough: from the PATH, or from locks/go.txt."""
    found = shutil.which("go")
    if found and go_version(_output([found, "version"])) >= NEEDED_GO:
        return Path(found)
    folder = build.folder / "go"
    fill(build, folder, "locks/go.txt")
    return folder / "bin" / "go"


def _make(build: Build) -> None:
    go = _go(build)
    version = collector_version(MANIFEST.read_text())
    scratch = build.folder / "scratch"
    shutil.copytree(REPLACED, scratch / REPLACED.name)
    # GOTOOLCHAIN: never fetch another Go. Where modules come from is left to the
    # environment.
    env = {"GOTOOLCHAIN": "local", "GOBIN": str(scratch), "GOWORK": "off"}
    # -e: a module that only tests of the parts import need not be there.
    env["GOFLAGS"] = f"{os.environ.get('GOFLAGS', '')} -e".strip()
    build.run([go, "install", f"{BUILDER}@v{version}"], cwd=scratch, env=env)
    # The builder calls `go` by name.
    env["PATH"] = f"{go.parent}:{_path()}"
    env["CGO_ENABLED"] = "0"
    build.run([scratch / "builder", f"--config={MANIFEST}"], cwd=scratch, env=env)
    (build.folder / "bin").mkdir()
    (scratch / "out" / "otelcol-keylag").rename(build.folder / TOOL.program)
    for leftover in ("scratch", "go"):
        shutil.rmtree(build.folder / leftover, ignore_errors=True)


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


TOOL = Tool(
    name="otelcol",
    purpose="OpenTelemetry Collector",
    inputs=(
        "deploy/otel-collector/builder.yaml",
        "locks/go.txt",
        *(
            str(file.relative_to(CHECKOUT))
            for file in sorted(REPLACED.rglob("*"))
            if file.is_file()
        ),
    ),
    program="bin/otelcol-keylag",
    make=_make,
    advice=(
        "Either let Go reach its module proxy (GOPROXY, GOFLAGS) and run "
        "`make setup` again, or put `otelcol-contrib` on the PATH."
    ),
    on_path=("otelcol-contrib", "otelcol"),
    accept=has_parts,
)
