import numpy as np
import pytest

from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.rare_cells import geometric, rare_cells


@pytest.mark.parametrize("chance", [0.5, 0.02, 1e-3, 2e-4, 1e-5])
def test_as_many_as_expected_and_nowhere_more_than_elsewhere(chance: float) -> None:
    num_cells = int(2000 / chance)
    cells = rare_cells(num_cells, chance=chance, noise=NoiseSource.for_simulation(3))
    assert (np.diff(cells) > 0).all()
    assert 0 <= cells[0] <= cells[-1] < num_cells
    assert abs(len(cells) - 2000) < 5 * np.sqrt(2000)
    quarters = np.bincount(cells * 4 // num_cells, minlength=4)
    assert (np.abs(quarters - len(cells) / 4) < 5 * np.sqrt(500)).all()


def test_gaps_are_geometric() -> None:
    draws = geometric(20_000, rate=0.5, noise=NoiseSource.for_simulation(1))
    ratio = np.exp(-0.5)
    assert draws.min() == 0
    assert draws.mean() == pytest.approx(ratio / (1 - ratio), abs=0.07)
    assert (draws == 0).mean() == pytest.approx(1 - ratio, abs=0.017)


def test_no_cell_and_no_chance() -> None:
    noise = NoiseSource.for_simulation(0)
    assert len(rare_cells(0, chance=0.1, noise=noise)) == 0
    assert len(geometric(0, rate=0.1, noise=noise)) == 0
    for chance in (0.0, 0.6, float("nan")):
        with pytest.raises(ValueError, match="expected a chance"):
            rare_cells(10, chance=chance, noise=noise)
