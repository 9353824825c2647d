"""Format overhead.md: all calls and arms in one table, for the documentation."""

from collections.abc import Iterable, Iterator

from keylag_bench.arms_and_workloads import ARMS, BASE
from keylag_bench.results import Result


def to_markdown(result: Result) -> str:
    """Return tables of CPU ratios by call and arm, and the costs of exports.

    The first table is relative to bare Keystone, the second one, for variants of
    Keylag, to Keylag with its defaults.
    """
    by_bare = {
        call: {arm: m.cpu_ratio.as_text() for arm, m in arms.items() if arm != BASE}
        for call, arms in result.items()
    }
    by_keylag = {
        call: {arm: m.by_keylag.as_text() for arm, m in arms.items() if m.by_keylag}
        for call, arms in result.items()
    }
    parts = [
        "CPU as a multiple of bare Keystone's, with 95 % intervals:\n",
        *_table(by_bare),
    ]
    if any(by_keylag.values()):
        parts += [
            "\nCPU as a multiple of Keylag's by default, with 95 % intervals:\n",
            *_table(by_keylag),
        ]
    exports = list(_exports(result))
    return "\n".join([*parts, *(["\nExports:\n", *exports] if exports else [])]) + "\n"


def _table(cells: dict[str, dict[str, str]]) -> Iterator[str]:
    arms = list(dict.fromkeys(arm for row in cells.values() for arm in row))
    yield _row(["call", *(ARMS[arm].title for arm in arms)])
    yield _row(["---", *("---:" for _ in arms)])
    for call, found in cells.items():
        yield _row([call, *(found.get(arm, "-") for arm in arms)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _exports(result: Result) -> Iterator[str]:
    for call, arms in result.items():
        for arm, measured in arms.items():
            if found := measured.export_costs:
                yield f"- {call}, {ARMS[arm].title}: {found.as_text()}"
