"""Generators are compared with each other, and the page states target and limit."""

from benchmarks.noise import KEYSTREAM, contenders, report


def test_ours_come_first_and_the_keystream_is_among_them() -> None:
    names = [one.name for one in contenders((16.0, 160.0))]
    assert names[:2] == ["vesper, noise_std 0.25", "vesper, noise_std 2.5"]
    assert KEYSTREAM in names
    assert len(set(names)) == len(names) == 7


def test_the_page_compares_ours_with_target_and_limit() -> None:
    text = report((16.0,), 1, "python -m benchmarks.noise")
    row = next(line for line in text.splitlines() if line.startswith("| vesper, noise_std 0.25 |"))
    assert row.count(" x |") == 2
    assert "%" in row
    assert "Target: 150 M per CPU second" in text
    assert "The limit is the keystream" in text
