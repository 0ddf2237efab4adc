import numpy as np

from vesper.model.principal_components import principal_components


def test_it_finds_the_directions_of_largest_variance() -> None:
    generator = np.random.default_rng(0)
    factors = generator.normal(size=(4000, 3))
    features = factors @ generator.normal(size=(3, 20)) + 0.1 * generator.normal(size=(4000, 20))
    projected = principal_components(features.astype(np.float32), width=3)
    assert projected.shape == (4000, 3)
    spread = projected.std(axis=0)
    assert spread[0] >= spread[1] >= spread[2]
    design = np.column_stack([projected, np.ones(4000)])
    for factor in factors.T:  # each hidden factor is a linear function of the components
        residual = factor - design @ np.linalg.lstsq(design, factor, rcond=None)[0]
        assert residual.std() < 0.2


def test_it_repeats_bit_for_bit_and_takes_bytes() -> None:
    features = np.random.default_rng(1).integers(0, 2, size=(100, 9)).astype(np.uint8)
    assert np.array_equal(
        principal_components(features, width=15), principal_components(features, width=15)
    )
    assert principal_components(features, width=15).shape == (100, 15)


def test_few_or_no_features() -> None:
    assert principal_components(np.zeros((5, 0), dtype=np.float32), width=15).shape == (5, 0)
    constant = principal_components(np.ones((5, 2), dtype=np.float32), width=15)
    assert constant.shape == (5, 4)
    assert not constant.any()
