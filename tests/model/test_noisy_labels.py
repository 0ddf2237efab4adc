"""Learning from responses: the loss, estimated metrics, and which labels may be read."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from vesper.errors import InputError
from vesper.mechanism.label_door import respond
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.model.evaluation import evaluate
from vesper.model.noisy_labels import NoisyLabelClassification
from vesper.model.objective_factory import LabelResponses, make_objective
from vesper.privacy.accounting.randomized_response import forward_targets

EPSILON, CLASSES, ROWS = 1.0, 3, 40_000
RANDOM = np.random.default_rng(0)


def responded(labels: np.ndarray, num_classes: int) -> NoisyLabelClassification:
    noise = NoiseSource.for_simulation(5)
    observed = respond(
        labels,
        epsilon=EPSILON,
        num_classes=num_classes,
        words=lambda rows: noise.words(len(rows)),
    )
    return NoisyLabelClassification(
        labels, observed, num_classes, num_train=len(labels) // 2, epsilon=EPSILON
    )


def test_gradient_of_the_loss() -> None:
    """softmax - forward targets, over the batch (LABEL-RR)."""
    observed, rows = np.array([0, 2, 1, 1]), np.arange(4)
    objective = NoisyLabelClassification(observed, observed, CLASSES, num_train=4, epsilon=EPSILON)
    scores = torch.from_numpy(RANDOM.normal(size=(4, CLASSES))).requires_grad_()
    torch.autograd.backward([objective.loss(scores.float(), rows)])
    posterior = softmax(scores.detach().numpy(), axis=1)
    targets = forward_targets(posterior, observed, epsilon=EPSILON)
    assert scores.grad is not None
    assert np.allclose(scores.grad.numpy(), (posterior - targets) / 4, atol=1e-6)


@pytest.mark.parametrize(("num_classes", "tolerance"), [(2, 3.0), (6, 4.0)])
def test_metrics_estimate_those_of_true_labels(num_classes: int, tolerance: float) -> None:
    labels = (RANDOM.random(ROWS) < 0.3).astype(np.int64)
    if num_classes > 2:
        labels = RANDOM.integers(0, num_classes, ROWS)
    scores = RANDOM.normal(size=(ROWS, num_classes)) + 1.5 * np.eye(num_classes)[labels]
    objective, truth = responded(labels, num_classes), evaluate(scores, labels)
    estimate = objective.evaluate(scores, np.arange(ROWS))
    assert abs(estimate - truth) < tolerance
    uncorrected = evaluate(scores, objective._observed)
    assert abs(uncorrected - truth) > 2 * tolerance


def test_test_rows_are_evaluated_exactly() -> None:
    labels = np.array([0, 1, 2, 0, 1, 2])
    objective = NoisyLabelClassification(labels, np.array([1, 1, 1]), 3, num_train=2, epsilon=1.0)
    assert objective.evaluate(np.eye(3), np.array([3, 4, 5])) == 100.0


def test_rows_without_a_response_are_not_trained_on() -> None:
    labels = np.array([0, 1, 2, 0])
    objective = NoisyLabelClassification(labels, labels[:3], 3, num_train=2, epsilon=1.0)
    for use in (
        lambda: objective.loss(torch.zeros(1, 3), np.array([3])),
        lambda: objective.label_posteriors(np.array([3])),
        lambda: objective.evaluate(np.zeros((2, 3)), np.array([2, 3])),
    ):
        with pytest.raises(ValueError, match="without a response"):
            use()


def test_labels_behind_responses_are_never_read() -> None:
    observed, rows = np.array([0, 2, 1]), np.arange(3)
    one, other = (
        NoisyLabelClassification(labels, observed, 3, num_train=2, epsilon=1.0)
        for labels in (np.array([0, 1, 2]), np.array([2, 2, 2]))
    )
    scores = RANDOM.normal(size=(3, 3))
    assert one.evaluate(scores, rows) == other.evaluate(scores, rows)
    assert one.loss(torch.from_numpy(scores).float(), rows) == other.loss(
        torch.from_numpy(scores).float(), rows
    )
    assert np.array_equal(one.label_posteriors(rows), other.label_posteriors(rows))


def test_label_posteriors_are_likelihoods() -> None:
    objective = NoisyLabelClassification(np.array([0]), np.array([1]), 3, num_train=1, epsilon=1.0)
    (posterior,) = objective.label_posteriors(np.array([0]))
    assert posterior.argmax() == 1
    assert posterior[1] / posterior[0] == pytest.approx(np.e, rel=1e-6)
    assert posterior.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("task", "balanced", "message"),
    [("regression", False, "labels that are classes"), ("classification", True, "class_weights")],
)
def test_unsupported_settings_are_refused(task: str, balanced: bool, message: str) -> None:
    responses = LabelResponses(np.array([0, 1]), 1.0)
    with pytest.raises(InputError, match=message):
        make_objective(
            task, (0, 1), np.array([0, 1]), num_train=1, balanced=balanced, responses=responses
        )
