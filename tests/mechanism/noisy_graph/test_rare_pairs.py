import numpy as np
import pytest

from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph import rare_pairs as module
from vesper.mechanism.noisy_graph.rare_pairs import draw_geometric, sample_cells


@pytest.mark.parametrize("chance", [0.5, 0.02, 1e-3, 2e-4, 1e-5])
def test_as_many_as_expected_and_evenly_spread(chance: float) -> None:
    num_cells = int(2000 / chance)
    cells = sample_cells(num_cells, chance=chance, noise=NoiseSource.for_simulation(3))
    assert (np.diff(cells) > 0).all()
    assert 0 <= cells[0] <= cells[-1] < num_cells
    assert abs(len(cells) - 2000) < 5 * np.sqrt(2000)
    quarters = np.bincount(cells * 4 // num_cells, minlength=4)
    assert (np.abs(quarters - len(cells) / 4) < 5 * np.sqrt(500)).all()


@pytest.mark.parametrize(("chance", "tolerance"), [(0.02, 0.025), (2e-4, 0.025)])
def test_the_share_of_chosen_cells_is_close_to_the_chance(chance: float, tolerance: float) -> None:
    cells = sample_cells(int(40_000 / chance), chance=chance, noise=NoiseSource.for_simulation(8))
    assert len(cells) == pytest.approx(40_000, rel=tolerance)  # five deviations


@pytest.mark.parametrize("keep_chance", [1.0, 0.3])
def test_cells_are_independent_across_batches(
    keep_chance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 32 subsets of five cells, drawn two gaps at a time, with and without a keep chance."""
    subsampling_rate = None if keep_chance == 1 else float(np.log(1 / keep_chance - 1))
    monkeypatch.setattr(module, "DRAWS", 2)
    monkeypatch.setattr(module, "sampling_rates", lambda _: (-np.log(1 - 0.4), subsampling_rate))
    noise, counts = NoiseSource.for_simulation(2), np.zeros(32)
    for _ in range(4000):
        cells = sample_cells(5, chance=0.4, noise=noise)
        assert (np.diff(cells) > 0).all()
        counts[(1 << cells).sum()] += 1
    p = 0.4 * keep_chance
    law = np.array([p ** k.bit_count() * (1 - p) ** (5 - k.bit_count()) for k in range(32)])
    expected = 4000 * law
    common = expected > 5
    statistic = float((np.square(counts - expected) / expected)[common].sum())
    assert statistic < 75  # 99.99 % of 31 degrees of freedom


def test_gaps_are_geometric() -> None:
    draws = draw_geometric(20_000, rate=0.5, noise=NoiseSource.for_simulation(1))
    ratio = np.exp(-0.5)
    assert draws.min() == 0
    assert draws.mean() == pytest.approx(ratio / (1 - ratio), abs=0.07)
    assert (draws == 0).mean() == pytest.approx(1 - ratio, abs=0.017)


def test_no_cells_and_invalid_chances() -> None:
    noise = NoiseSource.for_simulation(0)
    assert len(sample_cells(0, chance=0.1, noise=noise)) == 0
    assert len(draw_geometric(0, rate=0.1, noise=noise)) == 0
    for chance in (0.0, 0.6, float("nan")):
        with pytest.raises(ValueError, match="expected a chance"):
            sample_cells(10, chance=chance, noise=noise)
