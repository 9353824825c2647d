"""The instructions of Kolla's derived image, run on a stand-in for Kolla's image."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from uv import find_uv_bin

from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag.tools.install import Installer
from keylag.tools.tool import ToolError
from keylag_dev.debian import DebianRelease
from keylag_dev.matrix import print_line
from keylag_dev.pythons import BUILD_OUTPUT, PACKAGE_FILES, UV_VARIABLES
from keylag_dev.sandbox import debian_command

DOCKERFILE = CHECKOUT / "deploy" / "kolla-ansible" / "Dockerfile"
KEYSTONE_LOCK = CHECKOUT / "locks" / "keystone-2026.1.txt"
DEBIAN = DebianRelease("bookworm", "3.11")
VENV = Path("/var/lib/kolla/venv")
CONSTRAINTS = Path("requirements/upper-constraints.txt")
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
OURS = re.compile(r"opentelemetry|keylag")
"""Packages that Kolla's image does not have."""
UNFIT = "opentelemetry-semantic-conventions===0.60b1"
"""From the upper constraints of 2026.1; no instrumentation has it and takes wrapt 2."""
HOSTS = re.compile("PIP_|PYTHON|KEYLAG_")
"""Variables with settings and folders of the host."""


def instructions(name: str) -> list[str]:
    """Return the arguments of each instruction of that name, in order."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(rf"^{name} (.+)", text, re.MULTILINE)


def test_copied_folder_is_in_the_build_context() -> None:
    (copied,) = instructions("COPY")
    source, _ = copied.split()
    context = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert (CHECKOUT / source).is_dir()
    assert f"!{source}" in context


def run(image: Path, command: list[str | Path]) -> str:
    """Run a command as root of the image; return its output."""
    inside = debian_command(image, command, cwd=Path("/"), network=True)
    env = {name: value for name, value in os.environ.items() if not HOSTS.match(name)}
    env |= {**UV_VARIABLES, "HOME": "/root"}
    done = subprocess.run(inside, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture
def image() -> Iterator[Path]:
    """A Debian with Kolla's environment, its constraints and a locked Keystone."""
    tools = state_folder() / "tools"
    try:
        Installer(
            tools, lambda tool, event: print_line(f"{tool.purpose}: {event}")
        ).install([DEBIAN.tool])
        uv = find_uv_bin()
    except ToolError as error:
        pytest.skip(str(error))
    temporary = state_folder() / "tmp"
    temporary.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kolla", dir=temporary) as folder:
        root = Path(folder) / "image"
        # Links suffice: what is installed replaces files and changes none.
        debian = tools / DEBIAN.tool.name
        shutil.copytree(debian, root, symlinks=True, copy_function=os.link)
        install_keystone(root, uv)
        yield root


def install_keystone(root: Path, uv: Path) -> None:
    """Create Kolla's environment and constraints from the lock file."""
    lock = KEYSTONE_LOCK.read_text(encoding="utf-8")
    pins = [f"{name}==={version}" for name, version in PIN.findall(lock)]
    fit = [pin for pin in pins if not OURS.match(pin)]
    (root / CONSTRAINTS).parent.mkdir()
    (root / CONSTRAINTS).write_text("\n".join([*fit, UNFIT]), encoding="utf-8")
    (root / "keystone.txt").write_text("\n".join(fit), encoding="utf-8")
    run(root, ["python3", "-m", "venv", VENV])
    python = VENV / "bin" / "python"
    run(root, [uv, "pip", "install", "--no-deps", "-p", python, "-r", "/keystone.txt"])


def installed(image: Path) -> set[str]:
    return set(run(image, [VENV / "bin" / "pip", "freeze"]).splitlines())


@pytest.mark.matrix
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bwrap")
def test_instructions_install_keylag_and_change_no_package(image: Path) -> None:
    before = installed(image)
    (copied,) = instructions("COPY")
    _, target = copied.split()
    # The sandbox's /tmp is empty in each command, unlike an image's.
    source = image / "collectors"
    source.mkdir()
    for name in PACKAGE_FILES:
        path = CHECKOUT / "collectors" / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=BUILD_OUTPUT)
        else:
            shutil.copy(path, source)

    outputs = [
        run(image, ["sh", "-ec", f"cp -r /collectors {target}; {line}"])
        for line in instructions("RUN")
    ]

    assert before <= installed(image)
    assert outputs[-1].rstrip().endswith("seams bound; OK.")
    assert "Calls are timed in C." in outputs[-1]
