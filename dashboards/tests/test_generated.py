"""The committed files are those that the generator makes."""

import json

import pytest

from keylag_dashboards import __main__ as generator
from keylag_dashboards import render
from keylag_dashboards.boards import BOARDS
from keylag_dashboards.config import DATASOURCE, IMPORT_INPUT

ALL = {board.name: board for board in BOARDS}


def test_generated_files_are_up_to_date() -> None:
    """If this fails, run `python -m keylag_dashboards` and commit the result."""
    made = {str(path): text for path, text in generator.generated_files()}
    found = {
        str(path.relative_to(generator.FOLDER)): path.read_text(encoding="utf-8")
        for path in generator.FOLDER.rglob("*.*")
    }

    assert found == made


@pytest.mark.parametrize("board", ALL.values(), ids=list(ALL))
def test_import_differs_in_the_data_source_and_rows(board) -> None:
    imported = render.for_import(board)
    provisioned = render.provisioned(board)

    (asked,) = imported.pop("__inputs")
    needed = {(one["type"], one["id"]) for one in imported.pop("__requires")}
    answer = imported["templating"]["list"][0]["current"]
    types = {panel["type"] for panel in render.all_panels(imported)}
    provisioned["templating"]["list"][0]["current"] = answer
    assert (asked["name"], asked["pluginId"]) == (IMPORT_INPUT, "prometheus")
    assert answer["value"] == f"${{{IMPORT_INPUT}}}"
    assert types == {name for kind, name in needed if kind == "panel"}
    assert list(render.all_panels(imported)) == list(render.all_panels(provisioned))
    del imported["panels"], provisioned["panels"]
    assert imported == provisioned


@pytest.mark.parametrize("board", ALL.values(), ids=list(ALL))
def test_imported_rows_that_need_an_exporter_are_collapsed_but_the_first(board) -> None:
    rows = [one for one in render.for_import(board)["panels"] if one["type"] == "row"]

    assert [row.get("collapsed", False) for row in rows] == [
        False,
        *(bool(row.source) for row in board.rows[1:]),
    ]
    for made, row in zip(rows, board.rows, strict=True):
        assert row.source == "" or made["title"].endswith("_state")


def test_uids_are_derived_from_names() -> None:
    """Links and bookmarks contain the uid, so it has to be stable."""
    uids = [render.provisioned(board)["uid"] for board in BOARDS]

    assert uids == [f"keylag-{name}" for name in ALL]
    assert all(len(uid) <= 40 for uid in uids)


@pytest.mark.parametrize("board", ALL.values(), ids=list(ALL))
def test_links_keep_time_and_variables(board) -> None:
    made = render.provisioned(board)
    (to_all,) = made["links"]
    to_one = [
        link["url"]
        for panel in render.all_panels(made)
        for link in panel.get("links", [])
    ]

    assert to_all["keepTime"]
    assert to_all["includeVars"]
    assert to_all["tags"] == made["tags"]
    for url in to_one:
        name, _, query = url.removeprefix("/d/keylag-").partition("?")
        assert name in ALL
        shown, _, kept = query.partition("&")
        assert shown.removeprefix("viewPanel=").isdigit()
        assert kept == "${__url_time_range}&${__all_variables}"


def test_no_data_source_is_hard_coded() -> None:
    """Panels, variables and annotations use the selected one, or Grafana's own."""
    for board in BOARDS:
        made = render.provisioned(board)
        asking = [
            *(one for one in render.all_panels(made) if one["type"] != "text"),
            *made["templating"]["list"][1:],
            *(mark for mark in made["annotations"]["list"] if "expr" in mark),
        ]
        uids = {json.dumps(one["datasource"]["uid"]) for one in asking}
        assert uids == {json.dumps(DATASOURCE)}
