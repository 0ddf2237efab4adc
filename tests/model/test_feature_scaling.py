import numpy as np
import torch

from vesper.model.feature_scaling import (
    BINNED_UP_TO,
    BINS,
    KNOTS,
    LIMIT,
    FeatureScaling,
    Inputs,
    bins_for,
)


def scaled(features: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> torch.Tensor:
    bins = bins_for(features.shape[1])
    output: torch.Tensor = FeatureScaling(features, bins=bins)(torch.from_numpy(features))
    return output


def test_standardised_and_ranked_side_by_side() -> None:
    rng = np.random.default_rng(0)
    features = np.stack([rng.normal(3, 2, 5000), np.exp(3 * rng.normal(size=5000))], axis=1)
    out = scaled(features.astype(np.float32))
    assert out.shape == (5000, (2 + BINS) * 2)
    assert abs(float(out[:, 0].mean())) < 0.02
    assert abs(float(out[:, 0].std()) - 1) < 0.02
    assert float(out[:, 1].max()) == LIMIT  # a heavy tail is cut
    for ranked in (out[:, 2], out[:, 3]):  # and ranked it is a normal variable
        assert abs(float(ranked.mean())) < 0.02
        assert abs(float(ranked.std()) - 1) < 0.03
    order = np.argsort(features[:, 1])
    assert bool((out[order, 3].diff() >= 0).all())


def test_ties_share_a_rank_and_constants_are_zero() -> None:
    features = np.zeros((1000, 2), dtype=np.float32)
    features[:500, 0] = 1
    out = scaled(features)
    assert sorted(set(out[:, 0].tolist())) == [-1, 1]
    assert len(set(out[:, 2].tolist())) == 2
    assert torch.allclose(out[0, 2], -out[-1, 2], atol=2 / KNOTS)
    assert out[:, 1].abs().max() == 0
    assert out[:, 3].abs().max() < 1e-6


def test_bytes_are_features_too() -> None:
    features = (np.arange(600).reshape(200, 3) % 2).astype(np.uint8)
    out = FeatureScaling(features)(torch.from_numpy(features.astype(np.float32)))
    assert bool(torch.isfinite(out).all())


def test_inputs_are_the_same_cached_or_recomputed() -> None:
    features = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    scaling = FeatureScaling(features)
    nodes = np.array([299, 0, 17])
    cached, recomputed = Inputs(features, scaling), Inputs(features, scaling, max_bytes=0)
    assert torch.equal(cached.rows(nodes), recomputed.rows(nodes))
    assert torch.equal(cached.rows(nodes), scaling(torch.from_numpy(features[nodes])))


def test_few_features_are_binned_and_many_are_not() -> None:
    features = np.random.default_rng(0).normal(size=(50, BINNED_UP_TO + 1)).astype(np.float32)
    assert scaled(features).shape[1] == 2 * (BINNED_UP_TO + 1)
    assert scaled(features[:, 1:]).shape[1] == (2 + BINS) * BINNED_UP_TO
    assert FeatureScaling(features[:, :3]).width == 6  # bins are off by default


def test_a_value_is_above_some_bins_inside_one_and_below_the_rest() -> None:
    features = np.arange(4096, dtype=np.float32)[:, None]
    binned = scaled(features)[:, 2:]  # (4096, BINS), bins of 256 values
    assert bool((binned[:, 1:] <= binned[:, :-1]).all())
    assert bool((binned.diff(dim=0) >= 0).all())
    inside = (binned.abs() < 1).sum(dim=1)
    assert inside.max() == 1
    middle = binned[4096 // 2 + 100]
    assert middle[: BINS // 2].min() == 1
    assert middle[BINS // 2 + 1 :].max() == -1


def test_empty_bins_are_zero() -> None:
    features = np.zeros((1000, 2), dtype=np.float32)
    features[:500, 0] = 1
    binned = scaled(features)[:, 4:].reshape(1000, BINS, 2)
    assert sorted(set(binned[0, :, 0].tolist())) == [0, 1]  # two values: one bin between them
    assert torch.equal(binned[-1, :, 0], -binned[0, :, 0])
    assert binned[:, :, 1].abs().max() == 0  # a constant
