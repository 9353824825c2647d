"""What is committed is what the tables make today."""

import json

import pytest

from keylag_dashboards import __main__ as generator
from keylag_dashboards import render
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import DATASOURCE, IMPORT_INPUT

ALL = {board.name: board for board in BOARDS}


def test_the_generated_files_are_current() -> None:
    """If this fails, run `python -m keylag_dashboards` and commit what it writes."""
    made = {str(path): text for path, text in generator.generated_files()}
    found = {
        str(path.relative_to(generator.FOLDER)): path.read_text(encoding="utf-8")
        for path in generator.FOLDER.rglob("*.*")
    }

    assert found == made


@pytest.mark.parametrize("board", ALL.values(), ids=list(ALL))
def test_the_import_page_asks_for_the_data_source(board) -> None:
    """The build for import differs in what Grafana asks the reader, and only there."""
    imported = render.for_import(board)
    provisioned = render.provisioned(board)

    (asked,) = imported.pop("__inputs")
    needed = {(one["type"], one["id"]) for one in imported.pop("__requires")}
    answer = imported["templating"]["list"][0]["current"]
    types = {panel["type"] for panel in imported["panels"]} - {"row"}
    provisioned["templating"]["list"][0]["current"] = answer
    assert (asked["name"], asked["pluginId"]) == (IMPORT_INPUT, "prometheus")
    assert answer["value"] == f"${{{IMPORT_INPUT}}}"
    assert types == {name for kind, name in needed if kind == "panel"}
    assert imported == provisioned


def test_addresses_of_dashboards_do_not_change() -> None:
    """Links and bookmarks hold the uid, so it is the name and nothing made up."""
    uids = [render.provisioned(board)["uid"] for board in BOARDS]

    assert uids == [f"keylag-{name}" for name in ALL]
    assert all(len(uid) <= 40 for uid in uids)


@pytest.mark.parametrize("board", ALL.values(), ids=list(ALL))
def test_links_keep_time_and_variables(board) -> None:
    """From page to page one stays in the same hour and with the same workers."""
    made = render.provisioned(board)
    (to_all,) = made["links"]
    to_one = [
        link["url"] for panel in made["panels"] for link in panel.get("links", [])
    ]

    assert to_all["keepTime"]
    assert to_all["includeVars"]
    assert to_all["tags"] == made["tags"]
    for url in to_one:
        name, _, query = url.removeprefix("/d/keylag-").partition("?")
        assert name in ALL
        assert query == "${__url_time_range}&${__all_variables}"


def test_no_data_source_is_written_down() -> None:
    """Panels, variables and annotations ask the one that was chosen, or Grafana."""
    for board in BOARDS:
        made = render.provisioned(board)
        asking = [
            *(panel for panel in made["panels"] if panel["type"] != "row"),
            *made["templating"]["list"][1:],
            *(mark for mark in made["annotations"]["list"] if "expr" in mark),
        ]
        uids = {json.dumps(one["datasource"]["uid"]) for one in asking}
        assert uids == {json.dumps(DATASOURCE)}
