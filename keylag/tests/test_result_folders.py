"""Result folders: names, links, and atomic writes."""

import re
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keylag import results
from keylag.results import ResultsError
from keylag.state import write_output, write_private


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(name: str) -> Path:
    """Write a result as a run does."""
    with results.folder(None, "load", "token-issue") as out:
        write_output(out / "breakdown.json", name)
    return out


def test_each_run_has_a_folder_and_latest_links_to_the_last(here: Path) -> None:
    made = [fill("a"), fill("b"), fill("c")]
    parent = here / "out" / "load" / "token-issue"

    assert len({out.name for out in made}) == 3
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-\d)?", made[0].name)
    assert [(here / out / "breakdown.json").read_text() for out in made] == [*"abc"]
    assert (parent / "latest" / "breakdown.json").read_text() == "c"
    assert results.runs("breakdown.json", "load") == sorted(made)


def test_simultaneous_runs_have_separate_folders() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(fill, map(str, range(8))))

    assert len(set(made)) == 8
    assert [(out / "breakdown.json").read_text() for out in made] == [*"01234567"]


def fail(file_name: str | None) -> None:
    """Fail as a run does, perhaps after writing a file."""
    with results.folder(None, "load", "token-issue") as out:
        if file_name:
            (out / file_name).touch()
        raise KeyboardInterrupt


def test_failed_run_is_kept_but_not_latest(here: Path) -> None:
    good = fill("good")
    for file_name in ("jmeter.log", None):
        with pytest.raises(KeyboardInterrupt):
            fail(file_name)

    found = sorted(path.name for path in (here / good.parent).iterdir())
    assert len(found) == 3
    assert "latest" in found
    assert (here / good.parent / "latest").readlink() == Path(good.name)


def test_chosen_folder_must_be_empty(here: Path) -> None:
    with results.folder(here / "mine") as out:
        write_output(out / "breakdown.json", "first")

    rejected = pytest.raises(ResultsError, match="mine is not empty, and")
    with rejected, results.folder(here / "mine"):
        pass
    assert (here / "mine" / "breakdown.json").read_text() == "first"
    assert not (here / "latest").exists()


def test_unwritable_folder_is_an_error_before_the_run(here: Path) -> None:
    (here / "out").write_text("a file")

    rejected = pytest.raises(ResultsError, match=r"to out.*: .*--out")
    with rejected, results.folder(None, "demo"):
        pass


def test_write_output_is_atomic_for_readers(here: Path) -> None:
    path = here / "result.json"
    texts = ("a" * 1_000_000, "b" * 1_000_000)
    write_output(path, texts[0])
    end = time.monotonic() + 0.5

    def rewrite() -> None:
        while time.monotonic() < end:
            for text in texts:
                write_output(path, text)

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(rewrite)
        while not writing.done():
            assert path.read_text() in texts
        writing.result()


@pytest.mark.parametrize("write", [write_output, write_private])
def test_full_disk_keeps_the_old_file(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    path = tmp_path / "report.txt"
    write(path, "old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limit[1]))
    try:
        with pytest.raises(OSError, match=r"report\.txt"):
            write(path, "x" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    assert [one.name for one in tmp_path.iterdir()] == ["report.txt"]
    assert path.read_text() == "old"
