"""The palette, as colour-blind readers see it, and as the reports use it."""

from itertools import combinations

import pytest

from keylag_dashboards import palette
from keylag_dashboards.categories import TITLES
from keylag_dashboards.config import COLORS

RED_BLIND = ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052))
GREEN_BLIND = ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969))
"""Machado, Oliveira and Fernandes, 2009, severity 1, on linear RGB."""
SEEN = {
    "all": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no red": RED_BLIND,
    "no green": GREEN_BLIND,
}
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)
DIFFERENT = 12
"""Distance in CIE Lab; 2.3 is just noticeable side by side."""

Vector = tuple[float, ...]


def times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    """Return the product of a matrix and a vector."""
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def linear(color: str) -> Vector:
    """Return the linear RGB of `#rrggbb`."""
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )


def lab(color: str, seen: tuple[Vector, ...]) -> Vector:
    """Return the CIE Lab coordinates of a colour as a reader sees it."""
    xyz = times(XYZ, tuple(min(max(c, 0), 1) for c in times(seen, linear(color))))
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (a / w for a, w in zip(xyz, WHITE, strict=True))
    )
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


def distance(one: str, other: str, seen: tuple[Vector, ...]) -> float:
    """Return how different two colours look."""
    pairs = zip(lab(one, seen), lab(other, seen), strict=True)
    return sum((a - b) ** 2 for a, b in pairs) ** 0.5


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_categories_look_different_to_colour_blind_readers(seen) -> None:
    close = {
        (one, other): round(distance(COLORS[one], COLORS[other], seen))
        for one, other in combinations(COLORS, 2)
        if distance(COLORS[one], COLORS[other], seen) < DIFFERENT
    }

    assert close == {}


@pytest.mark.parametrize("page", ["#ffffff", "#181b1f"], ids=["light", "dark"])
def test_categories_are_visible_on_the_page(page) -> None:
    for name, color in COLORS.items():
        assert distance(color, page, SEEN["all"]) > 25, name


def test_a_category_has_one_colour_in_all_panels() -> None:
    by_title = palette.colors(TITLES.values())

    assert by_title == {title: COLORS[name] for name, title in TITLES.items()}
    assert palette.colors(["{{keystone_phase}}"])["sql"] == COLORS["sql"]
    assert len(set(palette.colors(["p50", "p95", "p99"]).values())) == 3
