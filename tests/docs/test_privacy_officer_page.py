"""The numbers on the page for the privacy officer follow from the claims."""

import re
from pathlib import Path
from statistics import NormalDist

import pytest

from vesper.privacy.accounting.gaussian import mu_of
from vesper.report.budget_section import best_guess_gaussian

PAGE = Path(__file__).parents[2] / "docs" / "privacy-officer.md"


def row(start: str) -> list[float]:
    line = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {start}"))
    return [float(number) for number in re.findall(r"\| ([\d.]+)", line)]


def test_the_numbers_in_the_table_are_correct() -> None:
    epsilons = row("epsilon (delta 1e-6)")
    assert epsilons == [0.5, 1, 2, 4, 8]
    normal = NormalDist()
    for epsilon, right, found in zip(
        epsilons, row("its best guess"), row("it finds an edge"), strict=True
    ):
        mu = mu_of(epsilon=epsilon, delta=1e-6)
        assert right == pytest.approx(100 * best_guess_gaussian(mu=mu), abs=0.051)
        power = 1 - normal.cdf(normal.inv_cdf(0.99) - mu)
        assert found == pytest.approx(100 * power, abs=0.051)


def test_the_page_is_short_enough_for_two_printed_pages() -> None:
    words = re.sub(r"[|#*`\[\]()-]", " ", PAGE.read_text()).split()
    assert len(words) < 1100
