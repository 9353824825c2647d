"""Tools: builds, replacements on the PATH, and failures."""

import hashlib
import re
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path

import pytest

from keylag.paths import CHECKOUT, SETUP_COMMAND
from keylag.tools import (
    EXTRA_TOOLS,
    TOOLS,
    ToolError,
    cassandra,
    jmeter,
    maven,
    otel_collector,
)
from keylag.tools.install import Installer, installed_path, require_tool
from keylag.tools.tool import Build, Tool, tail


def build_program(build: Build) -> None:
    """Build a tool that is one empty file."""
    build.run(["touch", "program"])


def fail_after_first_step(build: Build) -> None:
    """Create a file and fail."""
    build.run(["touch", "half"])
    build.run(["sh", "-c", "echo the reason; exit 7"])


TOOL = Tool(
    name="thing",
    purpose="a thing",
    inputs=("locks/go.in",),
    program="program",
    make=build_program,
    advice="Do this.",
)


def install(folder: Path, *tools: Tool) -> list[str]:
    """Install tools and return the reported events."""
    events: list[str] = []
    installer = Installer(folder, lambda tool, event: events.append(tool.name + event))
    installer.install(tools)
    return [event.split(" in ")[0] for event in events]


def test_tool_is_built_once(tmp_path: Path) -> None:
    first = install(tmp_path, TOOL)
    second = install(tmp_path, TOOL)

    assert first == ["thingbuilding", "thingbuilt"]
    assert second == []
    assert require_tool(TOOL, tmp_path) == tmp_path / "thing" / "program"


def test_changed_inputs_cause_a_new_build(tmp_path: Path) -> None:
    install(tmp_path, TOOL)
    changed = replace(TOOL, inputs=("locks/go.in", "locks/uv.in"))

    with pytest.raises(ToolError, match=f"Run `{SETUP_COMMAND}`"):
        require_tool(changed, tmp_path)

    assert install(tmp_path, changed) == ["thingbuilding", "thingbuilt"]


def test_deleted_tool_is_not_installed(tmp_path: Path) -> None:
    install(tmp_path, TOOL)
    (tmp_path / "thing" / "program").unlink()

    assert installed_path(TOOL, tmp_path) is None


def test_build_failure_shows_log_and_advice(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        install(tmp_path, replace(TOOL, make=fail_after_first_step))

    text = str(caught.value)
    assert "failed with exit code 7" in text
    assert "the reason" in text
    assert text.endswith("Do this.")
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "thing.log"}


def test_build_failure_keeps_other_tools(tmp_path: Path) -> None:
    bad = replace(TOOL, name="bad", make=fail_after_first_step)

    with pytest.raises(ToolError, match="build of bad failed"):
        install(tmp_path, bad, TOOL)

    assert installed_path(TOOL, tmp_path)


def test_accepted_program_on_the_path_replaces_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "thing"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    taken = replace(TOOL, on_path=("thing",), accept=lambda _: True)

    install(tmp_path / "a", taken)
    install(tmp_path / "b", replace(taken, accept=lambda _: False))

    assert require_tool(taken, tmp_path / "a") == program
    assert require_tool(taken, tmp_path / "b") == tmp_path / "b" / "thing" / "program"


def test_cancel_stops_the_running_step(tmp_path: Path) -> None:
    build = Build(folder=tmp_path, log=tmp_path / "log", cache=tmp_path)
    timer = threading.Timer(0.2, build.cancel)
    timer.start()

    with pytest.raises(ToolError):
        build.run(["sleep", "60"])
    with pytest.raises(ToolError, match="cancelled"):
        build.run(["touch", "later"])

    timer.join()
    assert not (tmp_path / "later").exists()


def test_tail_returns_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1\n2\n3\n")

    assert tail(log, 2) == "2\n3"
    assert tail(tmp_path / "none") == ""


def test_tools_have_existing_inputs_and_unique_names() -> None:
    tools = [*TOOLS, *chain.from_iterable(EXTRA_TOOLS.values())]

    assert all(len(tool.inputs_digest()) == 16 for tool in tools)
    assert len({tool.name for tool in tools}) == len(tools)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.9 linux/amd64", (1, 9)),
        ("", (0, 0)),
    ],
)
def test_go_version_is_parsed(text: str, expected: tuple[int, int]) -> None:
    assert expected == otel_collector.go_version(text)


def test_collector_without_required_components_is_rejected(tmp_path: Path) -> None:
    names = otel_collector.REQUIRED_COMPONENTS
    complete = _printing_program(
        tmp_path / "complete", [f"    - name: {name}" for name in names]
    )
    incomplete = _printing_program(tmp_path / "incomplete", ["    - name: otlp"])

    assert otel_collector.has_components(complete)
    assert not otel_collector.has_components(incomplete)
    assert not otel_collector.has_components(tmp_path / "missing")


def test_builder_version_matches_the_components() -> None:
    version = otel_collector.collector_version(otel_collector.MANIFEST.read_text())

    assert f"otlpreceiver v{version}" in otel_collector.MANIFEST.read_text()


def test_jmeter_older_than_5_6_is_rejected(tmp_path: Path) -> None:
    assert jmeter.is_new_enough(
        _printing_program(tmp_path / "new", ["/_/  \\_\\ 5.6.3", "x"])
    )
    assert not jmeter.is_new_enough(
        _printing_program(tmp_path / "old", ["Version 2.13"])
    )


def test_assemble_home_places_all_files(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("ApacheJMeter-5.6.3", "ApacheJMeter_core-5.6.3", "asm-9.6"):
        (jars / f"{name}.jar").touch()
    with zipfile.ZipFile(jars / "ApacheJMeter_config-5.6.3.jar", "w") as archive:
        archive.writestr("bin/jmeter.properties", "")
        archive.writestr("META-INF/LICENSE", "")

    jmeter.assemble_home(jars, tmp_path / "home")

    home = tmp_path / "home"
    made = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert made == {
        "bin/ApacheJMeter.jar",
        "bin/jmeter",
        "bin/jmeter.properties",
        "lib/asm-9.6.jar",
        "lib/ext/ApacheJMeter_config-5.6.3.jar",
        "lib/ext/ApacheJMeter_core-5.6.3.jar",
    }


def _printing_program(program: Path, lines: list[str]) -> Path:
    """Create a program that prints lines and ignores its arguments."""
    text = "\n".join(lines)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, str]]:
    """A repository of artifacts over HTTP: its folder and its URL."""
    folder = tmp_path / "repository"
    (folder / "org").mkdir(parents=True)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, f"{url}/")
        yield folder, url
        server.shutdown()


def _build(folder: Path) -> Build:
    folder.mkdir()
    return Build(folder=folder, log=folder / "log", cache=folder)


def test_artifacts_are_downloaded_and_checked(
    repository: tuple[Path, str], tmp_path: Path
) -> None:
    (repository[0] / "org" / "a.jar").write_bytes(b"a jar")
    digest = hashlib.sha256(b"a jar").hexdigest()
    wanted = maven.artifacts(f"{digest}  org/a.jar\n")

    build = _build(tmp_path / "jars")
    maven.fetch(build, wanted, build.folder)

    assert (build.folder / "a.jar").read_bytes() == b"a jar"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("org/a.jar", "is not the file that"), ("org/b.jar", "cannot be downloaded: 404")],
)
def test_an_artifact_that_is_wrong_or_missing_is_refused(
    repository: tuple[Path, str], tmp_path: Path, path: str, reason: str
) -> None:
    (repository[0] / "org" / "a.jar").write_bytes(b"something else")

    build = _build(tmp_path / "jars")
    with pytest.raises(ToolError, match=f"{repository[1]}/{path} {reason}"):
        maven.fetch(build, [("0" * 64, path)], build.folder)
    assert list(build.folder.iterdir()) == []
    assert not build.cancelled, "the installer would hide the reason"


def test_a_repository_that_cannot_be_reached_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, "http://127.0.0.1:1")
    monkeypatch.setattr(maven, "RETRIES", 0)

    build = _build(tmp_path / "jars")
    with pytest.raises(ToolError, match=r"127\.0\.0\.1:1/org/a\.jar cannot be down"):
        maven.fetch(build, [("0" * 64, "org/a.jar")], build.folder)


@pytest.mark.parametrize(
    ("lock", "jar"),
    [
        (jmeter.LOCK, "ApacheJMeter-5.6.3.jar"),
        (cassandra.LOCK, "cassandra-all-5.0.6.jar"),
    ],
)
def test_every_artifact_of_a_lock_has_a_hash_and_a_name(lock: str, jar: str) -> None:
    found = maven.artifacts((CHECKOUT / lock).read_text())

    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest, _ in found)
    names = [path.rpartition("/")[2] for _, path in found]
    assert len(set(names)) == len(names)
    assert jar in names
