"""Generated pages match the declarations, and all links between pages resolve."""

import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from keylag_dashboards.metrics import instruments_by_kind
from keylag_dev import metrics_page, panels_page
from keylag_otel.model import CELLS, OPERATIONS, PHASE_BITS, PHASE_MASK, PHASES
from keylag_otel.request_timer import INITIAL_CELL
from keylag_otel.seam import Seam
from keylag_otel.seams import SEAMS

CHECKOUT = Path(__file__).parents[1]
DOCS = CHECKOUT / "docs"
STEP = re.compile(r"^[│├└ ]*([A-Za-z_.0-9]+) +(\w+|·) +(\w+|·)(?:  |$)", re.MULTILINE)
FOUND = re.compile(r"\| [\d, ]+(: [^|]+)? \|")
"""Results of a query in one run: numbers, and the reason for no results."""
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def test_metrics_page_is_current() -> None:
    """If this fails, run the generator and commit the page."""
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.page()


def test_panels_page_is_current() -> None:
    """Ignores the numbers of a run.  If it fails, run the generator on a stack."""
    written, made = (
        FOUND.sub("| |", text)
        for text in (
            panels_page.PAGE.read_text("utf-8"),
            panels_page.page(lambda _: 1),
        )
    )

    assert written == made


def test_metrics_have_unique_names_and_descriptions() -> None:
    """The SDK merges metrics with the same name."""
    metrics = [instrument for instrument, _ in instruments_by_kind()]

    assert len({metric.name for metric in metrics}) == len(metrics)
    assert all(metric.description for metric in metrics)


def test_token_path_uses_existing_seams_phases_and_operations() -> None:
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    picture = text.partition("```text\n")[2].partition("```")[0]
    lines = [line for line in picture.splitlines() if line and "/v3/" not in line]

    seams, phases, operations = zip(*STEP.findall(picture), strict=True)

    assert len(seams) == len(lines)
    assert set(seams) <= {seam.path for seam in SEAMS}
    assert set(phases) <= {*PHASES, "·"}
    assert set(operations) <= {*OPERATIONS, "·"}


def switched(seam: Seam) -> tuple[str, str]:
    """Return the phase and the operation that a seam switches to, or `·` for each."""
    phase = operation = "·"
    for factory in seam.factories:
        if isinstance(factory, partial) and "mask" in factory.keywords:
            mask, bits = factory.keywords["mask"], factory.keywords["bits"]
            phase = phase if mask & PHASE_MASK else PHASES[bits & PHASE_MASK]
            if not mask & ~PHASE_MASK:
                operation = OPERATIONS[bits >> PHASE_BITS]
    return phase, operation


def test_token_path_switches_as_its_seams_do() -> None:
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    picture = text.partition("```text\n")[2].partition("```")[0]
    table = {seam.path: switched(seam) for seam in SEAMS}
    table["setup_app_middleware"] = CELLS[INITIAL_CELL]

    steps = {(path, (phase, step)) for path, phase, step in STEP.findall(picture)}

    assert len(steps) > 20
    assert steps - set(table.items()) == set()


def pages() -> list[Path]:
    """Return all Markdown files of the checkout that Git knows."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        [*command, "*.md"], cwd=CHECKOUT, check=True, capture_output=True, text=True
    )
    paths = (CHECKOUT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.exists()]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(text)
    }


def broken_links(page: Path) -> Iterator[str]:
    """Yield the links to missing files of the checkout, or to missing headings."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield path
        elif anchor and anchor not in anchors(target):
            yield f"{path}#{anchor}"


def test_links_between_pages_resolve() -> None:
    broken = {str(page): [*broken_links(page)] for page in pages()}

    assert {page: links for page, links in broken.items() if links} == {}


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    links = "[a](page.md#a-b) [b](none.md) [c](#none) [d](https://example.org/none)"
    page.write_text(f"# A, b\n\n{links}\n", encoding="utf-8")

    assert [*broken_links(page)] == ["none.md", "#none"]
