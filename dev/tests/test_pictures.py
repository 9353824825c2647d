"""The pictures of the dashboards: the page about them, their size, missing programs."""

from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image, ImageDraw

from keylag.lab.network import Host
from keylag.tools import ToolError
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import COLORS
from keylag_dev import pictures_page
from keylag_dev.pictures import Schedule, main, with_palette
from keylag_dev.pictures_page import READINGS, Fault, write_page
from keylag_dev.site_picture import SitePicture

AT_TEN = 1_800_007_200.0
"""10:00 UTC of a day."""


def png(image: Image.Image) -> bytes:
    content = BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def test_every_dashboard_has_a_reading() -> None:
    assert set(READINGS) == {board.name for board in BOARDS}


def test_fault_takes_half_of_the_time() -> None:
    assert Schedule.of(20) == Schedule(300, 900, 1200)


def test_page_shows_pictures_and_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, images = tmp_path / "dashboards.md", tmp_path / "images"
    images.mkdir()
    (images / "sql.png").touch()
    (images / "tokens-light.png").touch()
    monkeypatch.setattr(pictures_page, "PAGE", page)
    monkeypatch.setattr(pictures_page, "IMAGES", images)

    write_page(Fault(AT_TEN, AT_TEN + 300, AT_TEN + 900, AT_TEN + 1200))

    text = page.read_text()
    assert "the same 20 minutes" in text
    assert "At 10:05 memcached was stopped, and at 10:15 it was started" in text
    assert "![SQL](images/sql.png)" in text
    assert "![Token calls](images/tokens-light.png)" in text
    assert text.count("![") == len(list(images.iterdir()))


def test_palette_keeps_the_colours_of_small_things() -> None:
    picture = Image.radial_gradient("L").convert("RGB").resize((1600, 900))
    draw = ImageDraw.Draw(picture)
    places = {color: (20 * n, 10) for n, color in enumerate(COLORS.values())}
    for color, (left, top) in places.items():
        draw.rectangle((left, top, left + 12, top + 4), fill=color)

    small = with_palette(png(picture))

    shown = Image.open(BytesIO(small)).convert("RGB")
    for color, place in places.items():
        wanted, found = Image.new("RGB", (1, 1), color), shown.getpixel(place)
        pairs = zip(wanted.getpixel((0, 0)), found, strict=True)
        assert max(abs(one - other) for one, other in pairs) <= 8, color
    assert len(small) < len(png(picture))


def test_missing_grafana_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    result = CliRunner().invoke(main, [])

    assert result.exit_code == 1
    assert "grafana is not installed. Put Grafana 12" in result.output


def test_page_of_a_laboratory_shows_a_picture_that_there_is(tmp_path: Path) -> None:
    images, pages = tmp_path / "images" / "labs", tmp_path / "labs"
    images.mkdir(parents=True)
    shown = SitePicture("galera", images / "lost.png", "The dashboard", "A node ends.")

    assert not shown.section(pages / "failures.md")

    shown.file.touch()
    section = shown.section(pages / "failures.md")
    assert "## The dashboard\n\nA node ends.\n" in section
    assert "![The dashboard](../images/labs/lost.png)" in section


def test_picture_that_cannot_be_taken_replaces_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    shown = SitePicture("galera", tmp_path / "lost.png", "The dashboard", "A node.")
    shown.file.touch()

    with pytest.raises(ToolError, match="grafana is not installed"):
        shown.take(tmp_path, Host("a", "keylag-a", "10.0.0.1"), 0.0)

    assert not shown.file.exists()
