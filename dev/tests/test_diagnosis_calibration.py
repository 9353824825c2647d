"""The calibration continues, and counts what agrees."""

import json
from pathlib import Path
from typing import Any

import pytest

from keylag_dev.diagnosis_calibration import read_results, summary, table


def verified(fault: str, **verdicts: str) -> dict[str, Any]:
    calls = {
        call: {
            "predicted_saving_seconds": [0.01, 0.02, 0.03],
            "measured_saving_seconds": None if verdict == "cannot tell" else [0, 1, 2],
            "verdict": verdict,
        }
        for call, verdict in verdicts.items()
    }
    return {"fault": fault, "verification": {"calls": calls}}


RESULTS = [
    verified("C4", GET="agrees", DELETE="agrees"),
    verified("D1", GET="does not agree", POST="cannot tell"),
    {"fault": "N1", "named": [], "not_verified": "N1 is no finding."},
]


def test_table_has_a_row_for_each_kind_of_calls() -> None:
    heading, *rows = "\n".join(table(RESULTS)).splitlines()[1:]

    assert heading.startswith("|---")
    assert rows == [
        "| C4 | GET | 20.0 [10.0, 30.0] | 1000.0 [0.0, 2000.0] | agrees |",
        "| C4 | DELETE | 20.0 [10.0, 30.0] | 1000.0 [0.0, 2000.0] | agrees |",
        "| D1 | GET | 20.0 [10.0, 30.0] | 1000.0 [0.0, 2000.0] | does not agree |",
        "| D1 | POST | 20.0 [10.0, 30.0] | - | cannot tell |",
        "| N1 | | | | not verified: N1 is no finding. |",
    ]


def test_share_leaves_out_what_cannot_be_told() -> None:
    assert summary(RESULTS) == (
        "2 of 3 predictions agree, 67%. Undecided: 1. Faults without a verification: 1."
    )


def test_share_of_nothing() -> None:
    assert summary([]).startswith("0 of 0 predictions agree. Undecided: 0.")


@pytest.mark.parametrize("number", [0, 1, 3])
def test_results_are_read_again(tmp_path: Path, number: int) -> None:
    file = tmp_path / "calibration.jsonl"
    if number:
        lines = [json.dumps(one) + "\n" for one in RESULTS[:number]]
        file.write_text("".join(lines))

    assert read_results(file) == RESULTS[:number]
