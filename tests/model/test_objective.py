"""Class weights, and their removal from the probabilities."""

import numpy as np
import pytest
import torch
from torch import nn

from vesper.model.objective import Classification


def fitted(objective: Classification, inputs: torch.Tensor) -> torch.Tensor:
    """Scores of a linear model at the minimum of the loss."""
    model = nn.Linear(inputs.shape[1], objective.outputs)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    rows = np.arange(len(inputs))
    for _ in range(200):
        optimizer.zero_grad()
        torch.autograd.backward([objective.loss(model(inputs), rows)])
        optimizer.step()
    with torch.no_grad():
        scores: torch.Tensor = model(inputs)
    return scores


def test_probabilities_of_rare_positives_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    labels = (rng.random(20_000) < 1 / (1 + np.exp(4 - 1.5 * x))).astype(np.int64)
    assert 0.02 < labels.mean() < 0.08
    inputs = torch.from_numpy(x[:, None].astype(np.float32))
    objective = Classification(labels, 2, balanced=True)
    scores = fitted(objective, inputs).double()
    probabilities = objective.predict(scores.numpy())[:, 1]
    weighted = scores.softmax(dim=1).numpy()[:, 1]
    assert weighted.mean() > 5 * labels.mean()  # as trained, far too high
    for low, high in ((0.0, 0.02), (0.02, 0.1), (0.1, 0.4), (0.4, 1.0)):
        group = (probabilities >= low) & (probabilities < high)
        error = 4 * np.sqrt(probabilities[group].mean() / group.sum())
        assert probabilities[group].mean() == pytest.approx(labels[group].mean(), abs=error)


def test_balanced_classes_count_alike_and_only_training_rows_are_counted() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    objective = Classification(labels, 2, num_train=4, balanced=True)
    scores = torch.zeros(4, 2)
    scores[3, 0] = 2.0  # the rare one is wrong
    rare = float(torch.nn.functional.softplus(torch.tensor(2.0)))
    expected = (3 * (4 / 6) * np.log(2) + (4 / 2) * rare) / (3 * (4 / 6) + 4 / 2)
    assert float(objective.loss(scores, np.arange(4))) == pytest.approx(expected, rel=1e-6)
    same = Classification(np.array([0, 0, 0, 1]), 2, balanced=True)
    assert np.array_equal(objective.predict(np.zeros((1, 2))), same.predict(np.zeros((1, 2))))
    assert objective.predict(np.zeros((1, 2)))[0].tolist() == pytest.approx([0.75, 0.25])


def test_without_weights_nothing_changes() -> None:
    labels = np.array([0, 2, 1])
    objective = Classification(labels, 3)
    scores = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 3.0], [2.0, 1.0, 0.0]])
    expected = torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels))
    assert torch.equal(objective.loss(scores, np.arange(3)), expected)
    assert objective.evaluate(scores.double().numpy(), np.arange(3)) == pytest.approx(200 / 3)
    assert objective.label_posteriors(np.array([1])).tolist() == [[0, 0, 1]]


def test_a_class_without_training_rows_keeps_finite_scores() -> None:
    objective = Classification(np.array([0, 0, 2]), 3, num_train=2, balanced=True)
    assert np.isfinite(objective.predict(np.zeros((2, 3)))).all()
