"""Reading JMeter's samples."""

from pathlib import Path

import pytest

from keylag.follow import Follower, Progress
from keylag.jtl import JtlError, read

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
    """Give the path of a file that a test fills."""
    return tmp_path / "samples.jtl"


def test_a_line_becomes_a_typed_sample(jtl: Path) -> None:
    """Times are seconds, and Keystone's own measurement comes along."""
    jtl.write_text(HEADER + GOOD)

    (sample,), notes = read(jtl)

    assert notes == []
    assert sample.start_seconds == pytest.approx(1700000000.123)
    assert sample.elapsed_seconds == pytest.approx(0.262)
    assert sample.latency_seconds == pytest.approx(0.260)
    assert sample.connect_seconds == pytest.approx(0.002)
    assert (sample.code, sample.success, sample.size_bytes) == ("201", True, 616)
    assert sample.timing is not None
    assert sample.timing.cells == {("sql", "roles"): pytest.approx(0.25)}


def test_a_sample_without_the_header_has_no_timing(jtl: Path) -> None:
    """An empty column is no measurement, and no fault either."""
    jtl.write_text(HEADER + BARE)

    (sample,), notes = read(jtl)

    assert sample.timing is None
    assert notes == []


@pytest.mark.parametrize("text", [None, ""])
def test_a_load_that_ended_before_its_first_sample_is_said_to(
    jtl: Path, text: str | None
) -> None:
    """Ctrl-C while Java starts leaves no file, or an empty one."""
    if text is not None:
        jtl.write_text(text)

    with pytest.raises(JtlError, match="the load ended before its first"):
        read(jtl)


@pytest.mark.parametrize("size", range(0, 400, 7))
def test_a_file_cut_anywhere_gives_its_whole_samples(jtl: Path, size: int) -> None:
    """A full disk, or a power failure, cuts where it likes."""
    whole = (HEADER + BARE + FAILED + GOOD).encode()
    jtl.write_bytes(whole[:size])
    lines = whole[:size].count(b"\n")
    if not lines:
        with pytest.raises(JtlError):
            read(jtl)
        return

    samples, notes = read(jtl)
    assert len(samples) == lines - 1
    assert len(notes) == (not whole[:size].endswith(b"\n"))


def test_half_a_last_line_is_passed_over_and_reported(jtl: Path) -> None:
    """A stopped run keeps its whole samples."""
    jtl.write_text(HEADER + GOOD + BARE.removesuffix(",\n"))

    samples, notes = read(jtl)

    assert len(samples) == 1
    assert len(notes) == 1
    assert notes[0].startswith(f"{jtl}: 1 records are no samples")
    assert notes[0].endswith("line 3: cut off at the end")


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
def test_noise_costs_no_other_sample(jtl: Path, noise: str) -> None:
    """Whatever stands between two samples, both are read."""
    jtl.write_text(HEADER + GOOD + noise + BARE)

    samples, notes = read(jtl)

    assert [sample.code for sample in samples] == ["201", "200"]
    assert len(notes) == 1


def test_a_field_may_go_over_lines(jtl: Path) -> None:
    """A quoted message with a line break is one record."""
    jtl.write_text(HEADER + GOOD.replace("CREATED", '"two\nlines"'))

    (sample,), notes = read(jtl)

    assert sample.message == "two\nlines"
    assert notes == []


def test_an_unreadable_timing_keeps_the_sample(jtl: Path) -> None:
    """The client's latency is good even if the header is not."""
    jtl.write_text(HEADER + GOOD.replace("total;dur=250.0", "total;dur=slow"))

    (sample,), notes = read(jtl)

    assert sample.timing is None
    assert "unreadable Server-Timing" in notes[0]


def test_missing_columns_are_named(jtl: Path) -> None:
    """A file written without our settings says what to do."""
    jtl.write_text("timeStamp,elapsed,label\n")

    with pytest.raises(JtlError, match=r"responseCode, .*server_timing.*user.prop"):
        read(jtl)


def test_a_growing_file_is_counted_as_it_grows(jtl: Path) -> None:
    """Half lines wait, set-up does not count, failures are errors."""
    follower = Follower(jtl, expected=3)

    assert follower.look() == Progress(0, 0, 3)

    jtl.write_text(HEADER + SETUP + GOOD + FAILED[:20])
    assert follower.look() == Progress(1, 0, 3)

    jtl.write_text(HEADER + SETUP + GOOD + FAILED)
    assert follower.look() == Progress(2, 1, 3)
    assert follower.failure == "GET /v3/auth/tokens 500 Oh, no"
