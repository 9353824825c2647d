"""Servers in control groups with limits, in both versions of control groups."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from keylag import control_groups
from keylag.disks import NoDiskError, find_disk
from keylag.faults.changes import limited
from keylag.faults.changes.limited import CPU, WRITES, Limited
from keylag.faults.model import FaultError
from keylag.faults.site import Site

PID = 4711


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of control groups; this process is in `/user`."""
    folder, own = tmp_path / "cgroup", tmp_path / "own"
    folder.mkdir()
    (folder / "cgroup.subtree_control").write_text("cpuset")
    own.write_text("4:cpu,cpuacct:/user\n3:blkio:/user\n0::/user\n")
    monkeypatch.setattr(control_groups, "CGROUPS", folder)
    monkeypatch.setattr(control_groups, "OWN_GROUPS", own)
    (tmp_path / "dev").write_text("254:0\n")
    monkeypatch.setattr(limited, "find_disk", lambda _: tmp_path)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site with one process of each service."""
    one = SimpleNamespace(process=SimpleNamespace(pid=PID))
    return cast("Site", SimpleNamespace(folder=tmp_path, processes=lambda _: [one]))


def limited_group(tree: Path) -> Path:
    """Return the group that was made."""
    (found,) = tree.glob("keylag-*")
    return found


@pytest.mark.parametrize(
    ("resource", "file", "text"),
    [
        (WRITES, "blkio/{}/blkio.throttle.write_iops_device", "254:0 20"),
        (CPU, "cpu/{}/cpu.cfs_quota_us", "20"),
    ],
)
def test_version_1_has_a_tree_for_each_controller(
    groups: Path, site: Site, resource: str, file: str, text: str
) -> None:
    tree = groups / Path(file).parts[0]
    tree.mkdir()

    Limited("mariadb", resource, 20).apply(site)

    made = limited_group(tree)
    assert (groups / file.format(made.name)).read_text() == text
    assert (made / "cgroup.procs").read_text() == str(PID)


@pytest.mark.parametrize(
    ("resource", "file", "text"),
    [(WRITES, "io.max", "254:0 wiops=20"), (CPU, "cpu.max", "20 100000")],
)
def test_version_2_has_one_tree(
    groups: Path, site: Site, resource: str, file: str, text: str
) -> None:
    Limited("mariadb", resource, 20).apply(site)

    made = limited_group(groups)
    assert (made / file).read_text() == text
    enabled = (groups / "cgroup.subtree_control").read_text()
    assert enabled == f"+{file.removesuffix('.max')}"


@pytest.mark.parametrize("tree", ["blkio", ""])
def test_the_server_returns_to_the_group_of_this_process(
    groups: Path, site: Site, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = groups / tree / "user"
    own.mkdir(parents=True)
    change = Limited("mariadb", WRITES, 20)
    change.apply(site)
    # The kernel deletes a group with its files.
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)

    change.undo(site)
    change.undo(site)

    assert (own / "cgroup.procs").read_text() == str(PID)
    assert not list((groups / tree).glob("keylag-*"))


def test_in_a_container_the_server_returns_to_the_tree(
    groups: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel names the container's group, and shows only what is inside."""
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    change = Limited("mariadb", CPU, 20)
    change.apply(site)

    change.undo(site)

    assert (groups / "cgroup.procs").read_text() == str(PID)


def test_a_group_that_stays_busy_is_an_error(groups: Path, site: Site) -> None:
    """Its folder is not empty here, as the kernel's is with a process in it."""
    change = Limited("mariadb", CPU, 20)
    change.apply(site)

    with pytest.raises(FaultError, match="does not become empty"):
        change.undo(site)


def test_without_control_groups_the_error_says_what_is_needed(
    groups: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_groups, "CGROUPS", groups / "none")

    with pytest.raises(FaultError, match="needs root outside of containers, and io"):
        Limited("mariadb", WRITES, 20).apply(site)


def test_a_folder_without_a_disk_has_no_writes_to_limit() -> None:
    with pytest.raises(NoDiskError, match="on no block device"):
        find_disk(Path("/proc"))
