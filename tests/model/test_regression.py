"""From numbers to bins, and back."""

import numpy as np
import pytest
import scipy.stats
import torch

from vesper.model.regression import BINS, Ranking, Regression, mean_ranks, r2, spearman

NUMBERS = np.random.default_rng(1).lognormal(size=400)


def confident(
    objective: Regression, rows: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> torch.Tensor:
    """Scores that are certain of the right bin."""
    return 30 * torch.from_numpy(objective.label_posteriors(rows))


def test_bins_hold_equal_shares_of_the_training_labels() -> None:
    objective = Ranking(NUMBERS, num_train=240)
    shares = objective.label_posteriors(np.arange(240)).sum(axis=0)
    assert shares.tolist() == [30] * BINS
    held_out = objective.label_posteriors(np.arange(240, 400)).sum(axis=0)
    assert held_out.sum() == 160


def test_the_right_bin_predicts_its_mean() -> None:
    objective = Regression(NUMBERS, num_train=400)
    rows = np.arange(400)
    scores = confident(objective, rows).double().numpy()
    predicted = objective.predict(scores)
    for value in np.unique(predicted):
        assert value == pytest.approx(NUMBERS[predicted == value].mean(), rel=1e-6)
    assert objective.evaluate(scores, rows) == pytest.approx(100 * r2(predicted, NUMBERS))
    assert objective.evaluate(scores, rows) > 90  # quantiles would reach 52


@pytest.mark.parametrize("kind", [Regression, Ranking])
def test_minimising_the_loss_finds_the_right_bins(kind: type[Regression]) -> None:
    objective = kind(NUMBERS, num_train=400)
    rows = np.arange(100)
    right = confident(objective, rows) / 10
    wrong = right.roll(3, dims=0)
    assert objective.loss(right, rows) < objective.loss(torch.zeros(100, BINS), rows)
    assert objective.loss(right, rows) < objective.loss(wrong, rows)
    scores = torch.zeros(100, BINS, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.3)
    for _ in range(40):
        optimizer.zero_grad()
        torch.autograd.backward([objective.loss(scores, rows)])
        optimizer.step()
    # the right bin of each; what remains is the spread within a bin
    assert objective.evaluate(scores.detach().double().numpy(), rows) > 90


def test_ranking_depends_on_order_alone() -> None:
    rows = np.arange(50)
    scores = torch.randn(50, BINS, generator=torch.Generator().manual_seed(0))
    plain, stretched = (Ranking(f, num_train=400) for f in (NUMBERS, np.exp(NUMBERS)))
    assert float(plain.loss(scores, rows)) == pytest.approx(float(stretched.loss(scores, rows)))
    values = scores.double().numpy()
    assert plain.evaluate(values, rows) == pytest.approx(stretched.evaluate(values, rows))


def test_ranking_accepts_a_batch_of_equal_labels() -> None:
    objective = Ranking(np.ones(20), num_train=20)
    scores = torch.zeros(5, BINS, requires_grad=True)
    loss = objective.loss(scores, np.arange(5))
    torch.autograd.backward([loss])
    assert torch.isfinite(loss)


def test_few_distinct_labels_leave_bins_empty() -> None:
    objective = Regression(np.array([0.0, 1.0] * 50), num_train=100)
    assert np.isfinite(objective.predict(np.zeros((3, BINS)))).all()
    scores = confident(objective, np.arange(100)).double().numpy()
    assert objective.evaluate(scores, np.arange(100)) == pytest.approx(100)


def test_metrics_agree_with_scipy() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 6, size=80).astype(float), rng.normal(size=80)
    assert spearman(first, second) == pytest.approx(scipy.stats.spearmanr(first, second).statistic)
    assert mean_ranks(first).tolist() == scipy.stats.rankdata(first).tolist()
    assert spearman(np.zeros(80), second) == 0
    assert np.isnan(spearman(second, np.zeros(80)))
    assert np.isnan(r2(second, np.zeros(80)))


@pytest.mark.parametrize("kind", [Regression, Ranking])
def test_neither_offset_nor_scale_changes_what_is_learned(kind: type[Regression]) -> None:
    rows = np.arange(400)
    plain = kind(NUMBERS, num_train=240)
    scores = torch.randn(400, BINS, generator=torch.Generator().manual_seed(0))
    for offset, scale in ((1e9, 1.0), (-1e12, 1.0), (0.0, 1e200), (0.0, 1e-200)):
        other = kind(NUMBERS * scale + offset, num_train=240)
        assert (other.label_posteriors(rows) == plain.label_posteriors(rows)).mean() > 0.99
        assert other.loss(scores, rows).item() == pytest.approx(
            plain.loss(scores, rows).item(), rel=1e-2
        )
        metric = other.evaluate(scores.double().numpy(), rows)
        assert metric == pytest.approx(plain.evaluate(scores.double().numpy(), rows), rel=1e-2)
