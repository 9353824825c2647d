"""The settings of a link, and how users write them."""

import pytest

from keylag.errors import WrongUsageError
from keylag.lab.link import (
    Link,
    format_rate,
    parse_duration,
    parse_rate,
    parse_ratio,
)
from keylag.lab.netem import arguments


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("277ms", 0.277), ("0.5s", 0.5), ("200us", 0.0002), ("100 MS", 0.1)],
)
def test_durations_have_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("6Mbit", 6e6), ("512kbit", 512e3), ("1gbit", 1e9), ("unlimited", 0)],
)
def test_rates_have_a_unit(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["100", "ms", "-1ms", "1m", "1e3ms", "", "nan ms"])
def test_other_durations_are_errors(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its text is the input
        parse_duration(text)


def test_a_ratio_is_a_percentage() -> None:
    assert parse_ratio("0.5%") == pytest.approx(0.005)
    with pytest.raises(ValueError, match=r"0\.5"):
        parse_ratio("0.5")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"round_trip_seconds": 11}, "A round trip takes 0 to 10 s"),
        ({"jitter_seconds": 0.1}, "jitter is at most as long"),
        ({"loss_ratio": 1.5}, "A loss is 0% to 100%"),
        ({"rate_bits_per_second": 100}, "A rate is 8 kbit/s or more"),
    ],
)
def test_a_link_rejects_values_out_of_range(
    settings: dict[str, float], reason: str
) -> None:
    with pytest.raises(WrongUsageError, match=reason):
        Link(**settings)


def test_a_link_shows_its_values_with_units() -> None:
    link = Link(0.277, 0.01, 0.005, 6e6)

    assert str(link) == "277 ms ± 10 ms, loss 0.5%, 6 Mbit/s"
    assert str(Link()) == "0 ms, loss 0%, unlimited"
    assert Link.from_json(link.as_json()) == link


@pytest.mark.parametrize(
    ("rate", "text"), [(1.5e9, "1.5 Gbit/s"), (512e3, "512 kbit/s"), (900, "900 bit/s")]
)
def test_rates_are_shown_in_a_unit_that_suits_them(rate: float, text: str) -> None:
    assert format_rate(rate) == text


def test_netem_gets_half_of_the_round_trip_in_each_direction() -> None:
    # 277 ms and half of it, of packets of 2 ms, wait or are on their way.
    assert " ".join(arguments(Link(0.277, 0.01, 0.005, 6e6))) == (
        "limit 209 delay 138500us 5000us loss 0.5% rate 6000000bit"
    )


def test_netem_has_no_rate_for_an_unlimited_link() -> None:
    assert " ".join(arguments(Link(0.1))) == ("limit 100000 delay 50000us 0us loss 0%")
