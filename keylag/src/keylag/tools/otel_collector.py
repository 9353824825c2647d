"""The OpenTelemetry Collector: found on the PATH, or built by its official builder."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from keylag.paths import DATA, DEPLOY, SETUP_COMMAND
from keylag.tools.tool import Build, Tool, ToolError
from keylag.tools.venvs import create_venv

MANIFEST = DEPLOY / "otel-collector" / "builder.yaml"
REPLACEMENT_MODULE = DEPLOY / "otel-collector" / "prometheus"
"""Replaces a Go module of which the Collector needs one function."""
BUILDER = "go.opentelemetry.io/collector/cmd/builder"
MIN_GO = (1, 25)
"""Oldest Go that the Collector's modules support."""
REQUIRED_COMPONENTS = ("otlp", "memory_limiter", "prometheus", "file", "health_check")
"""Components that deploy/otel-collector/*.yaml uses; `components` lists them."""
TIMEOUT_SECONDS = 20


def has_components(program: Path) -> bool:
    """Return whether a Collector program has all required components."""
    listed = _output([str(program), "components"])
    names = set(re.findall(r"name:\s*(\S+)", listed))
    return names.issuperset(REQUIRED_COMPONENTS)


def go_version(text: str) -> tuple[int, int]:
    """Return (major, minor) from the output of `go version`; (0, 0) without them."""
    found = re.search(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def collector_version(manifest: str) -> str:
    """Return the Collector's version, which is also the builder's, from a manifest.

    Raises ToolError for a manifest without a version.
    """
    found = re.search(r"^\s+version: (\S+)$", manifest, re.MULTILINE)
    if found is None:
        message = f"{MANIFEST} has no version"
        raise ToolError(message)
    return found[1]


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _find_go(build: Build) -> Path:
    found = shutil.which("go")
    if found and go_version(_output([found, "version"])) >= MIN_GO:
        return Path(found)
    folder = build.folder / "go"
    create_venv(build, folder, "locks/go.txt")
    return folder / "bin" / "go"


def _build_collector(build: Build) -> None:
    go = _find_go(build)
    version = collector_version(MANIFEST.read_text())
    scratch = build.folder / "scratch"
    shutil.copytree(REPLACEMENT_MODULE, scratch / REPLACEMENT_MODULE.name)
    # GOTOOLCHAIN=local prevents the download of another Go. GOPROXY and the like come
    # from the user's environment.
    env = {"GOTOOLCHAIN": "local", "GOBIN": str(scratch), "GOWORK": "off"}
    # -e: modules that only tests of components import may be missing.
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
            str(file.relative_to(DATA))
            for file in sorted(REPLACEMENT_MODULE.rglob("*"))
            if file.is_file()
        ),
    ),
    program="bin/otelcol-keylag",
    make=_build_collector,
    advice=(
        "Either give Go access to a module proxy (GOPROXY, GOFLAGS) and run "
        f"`{SETUP_COMMAND}` again, or put `otelcol-contrib` on the PATH."
    ),
    on_path=("otelcol-contrib", "otelcol"),
    accept=has_components,
)
