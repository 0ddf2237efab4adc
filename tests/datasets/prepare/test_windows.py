import pytest

from vesper.datasets.prepare.windows import parse_window, parse_windows
from vesper.errors import InputError

DAY = 86_400
NEW_YEAR_2024 = 1_704_067_200


def test_dates_are_utc_midnights() -> None:
    window = parse_window("train", "2024-01-01..2024-01-03")
    assert (window.start, window.stop) == (NEW_YEAR_2024, NEW_YEAR_2024 + 2 * DAY)
    assert window.holds_dates


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("2024-01-01T06:00:00..2024-02-01", NEW_YEAR_2024 + 6 * 3600),
        ("2024-01-01 06:00..2024-02-01", NEW_YEAR_2024 + 6 * 3600),
        ("2024-01-01T06:00:00+02:00..2024-02-01", NEW_YEAR_2024 + 4 * 3600),
        ("2024-01-01T06:00:00Z .. 2024-02-01", NEW_YEAR_2024 + 6 * 3600),
    ],
)
def test_date_times_and_offsets(text: str, start: int) -> None:
    assert parse_window("train", text).start == start


def test_integers_stand_for_themselves() -> None:
    window = parse_window("test", "-5..12")
    assert (window.start, window.stop, window.holds_dates) == (-5, 12, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "..",
        "2024-01-01",
        "2024-01-01...2024-02-01",
        "1..2..3",
        "2024-01-01..7",
        "2024-13-01..2025-01-01",
        "20240101..2024-02-01",
        "2024-W01-1..2024-02-01",
        "1.5..2",
        "2024-01-01T00:00:00.5..2024-02-01",
        f"0..{10**30}",
    ],
)
def test_misspelt_windows_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="train window: expected"):
        parse_window("train", text)


@pytest.mark.parametrize("text", ["5..5", "6..5", "2024-02-01..2024-01-01"])
def test_an_empty_window_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="which is empty"):
        parse_window("test", text)


@pytest.mark.parametrize(
    ("train", "test"), [("0..10", "9..12"), ("3..4", "0..10"), ("0..9", "0..9")]
)
def test_overlap_is_refused(train: str, test: str) -> None:
    with pytest.raises(InputError, match="not to overlap"):
        parse_windows(train=train, test=test)


@pytest.mark.parametrize(("train", "test"), [("0..10", "10..12"), ("10..12", "0..10")])
def test_windows_may_touch_and_come_in_either_order(train: str, test: str) -> None:
    first, second = parse_windows(train=train, test=test)
    assert (first.name, second.name) == ("train", "test")


def test_dates_and_integers_do_not_mix() -> None:
    with pytest.raises(InputError, match="two windows of dates or two of integers"):
        parse_windows(train="0..10", test="2024-01-01..2024-02-01")
