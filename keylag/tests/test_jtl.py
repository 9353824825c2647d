"""Reading JMeter's samples, and counting them while JMeter writes."""

from pathlib import Path

import pytest

from keylag.jmeter_progress import JtlProgress, Progress
from keylag.jtl import JtlError, read_samples

HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,"
    'Latency,Connect,"server_timing"\n'
)
GOOD = (
    "1700000000123,262,POST /v3/auth/tokens password,201,CREATED,Users 1-1,true,616,"
    '260,2,"total;dur=250.0, sql.roles;dur=250.0"\n'
)
BARE = "1700000000500,5,GET /v3/auth/tokens,200,OK,Users 1-2,true,616,4,0,\n"
FAILED = '1700000000600,7,GET /v3/auth/tokens,500,"Oh, no",Users 1-2,false,16,4,0,\n'
SETUP = "1700000000000,9,setup POST /v3/auth/tokens password,201,OK,S 1,true,1,1,1,\n"


@pytest.fixture
def jtl(tmp_path: Path) -> Path:
    """The path of a JTL file."""
    return tmp_path / "samples.jtl"


def test_record_becomes_a_typed_sample(jtl: Path) -> None:
    jtl.write_text(HEADER + GOOD)

    (sample,), warnings = read_samples(jtl)

    assert warnings == []
    assert sample.start_seconds == pytest.approx(1700000000.123)
    assert sample.elapsed_seconds == pytest.approx(0.262)
    assert sample.latency_seconds == pytest.approx(0.260)
    assert sample.connect_seconds == pytest.approx(0.002)
    assert (sample.code, sample.success, sample.size_bytes) == ("201", True, 616)
    assert sample.timing is not None
    assert sample.timing.cells == {("sql", "roles"): pytest.approx(0.25)}


def test_sample_without_header_has_no_timing(jtl: Path) -> None:
    jtl.write_text(HEADER + BARE)

    (sample,), warnings = read_samples(jtl)

    assert sample.timing is None
    assert warnings == []


@pytest.mark.parametrize("text", [None, ""])
def test_missing_or_empty_file_is_an_error(jtl: Path, text: str | None) -> None:
    """Ctrl-C while Java starts leaves no file, or an empty one."""
    if text is not None:
        jtl.write_text(text)

    with pytest.raises(JtlError, match="the load ended before its first"):
        read_samples(jtl)


@pytest.mark.parametrize("size", range(0, 400, 7))
def test_truncated_file_yields_complete_samples(jtl: Path, size: int) -> None:
    complete = (HEADER + BARE + FAILED + GOOD).encode()
    jtl.write_bytes(complete[:size])
    lines = complete[:size].count(b"\n")
    if not lines:
        with pytest.raises(JtlError):
            read_samples(jtl)
        return

    samples, warnings = read_samples(jtl)
    assert len(samples) == lines - 1
    assert len(warnings) == (not complete[:size].endswith(b"\n"))


def test_partial_last_line_is_skipped_and_reported(jtl: Path) -> None:
    jtl.write_text(HEADER + GOOD + BARE.removesuffix(",\n"))

    samples, warnings = read_samples(jtl)

    assert len(samples) == 1
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{jtl}: 1 invalid records were skipped")
    assert warnings[0].endswith("line 3: incomplete last line")


@pytest.mark.parametrize(
    "noise",
    [
        "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n",
        'a "quote that nobody closes\n',
        "\n",
        "1700000000500,fast,GET,200,OK,Users 1-2,true,616,4,0,\n",
        '1700000000500,5,GET,200,"never closed,Users 1-2,true,616,4,0,\n',
    ],
)
def test_invalid_lines_do_not_affect_other_samples(jtl: Path, noise: str) -> None:
    jtl.write_text(HEADER + GOOD + noise + BARE)

    samples, warnings = read_samples(jtl)

    assert [sample.code for sample in samples] == ["201", "200"]
    assert len(warnings) == 1


def test_quoted_field_may_contain_line_breaks(jtl: Path) -> None:
    jtl.write_text(HEADER + GOOD.replace("CREATED", '"two\nlines"'))

    (sample,), warnings = read_samples(jtl)

    assert sample.message == "two\nlines"
    assert warnings == []


def test_invalid_timing_keeps_the_sample(jtl: Path) -> None:
    jtl.write_text(HEADER + GOOD.replace("total;dur=250.0", "total;dur=slow"))

    (sample,), warnings = read_samples(jtl)

    assert sample.timing is None
    assert "invalid Server-Timing" in warnings[0]


def test_missing_columns_are_listed(jtl: Path) -> None:
    jtl.write_text("timeStamp,elapsed,label\n")

    with pytest.raises(JtlError, match=r"responseCode, .*server_timing.*user.prop"):
        read_samples(jtl)


def test_progress_counts_complete_lines_without_setup(jtl: Path) -> None:
    progress = JtlProgress(jtl, expected=3)

    assert progress.poll() == Progress(0, 0, 3)

    jtl.write_text(HEADER + SETUP + GOOD + FAILED[:20])
    assert progress.poll() == Progress(1, 0, 3)

    jtl.write_text(HEADER + SETUP + GOOD + FAILED)
    assert progress.poll() == Progress(2, 1, 3)
    assert progress.first_failure == "GET /v3/auth/tokens 500 Oh, no"
