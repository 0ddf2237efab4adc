"""k-ary randomised response for labels that leave the label party, drawn once per label.

keep = e^epsilon / (e^epsilon + k - 1)        the true class
flip = 1 / (e^epsilon + k - 1)                each of the k - 1 others

T    = (keep - flip) I + flip 1 1^T           T[true, seen], rows sum to 1
T^-1 = (I - flip 1 1^T) / (keep - flip)       unbiased: E over seen of T^-1[seen, .] = e_true

Learning from the responses seen, for posteriors p of a model and losses l_c of each class:

unbiased loss = sum over c of T^-1[seen, c] l_c              expectation: loss at the true class
forward loss  = -log (p T)[seen]                             minimal where p is the true posterior
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.privacy.accounting.safe_numbers import expect, expect_count

ROUND_DOWN = 1 - 2.0**-50
SMALLEST_EPSILON = 1e-9  # far above the rounding of a probability


def keep_probability(*, epsilon: float, num_classes: int) -> float:
    """Probability that a label is sent unchanged, rounded down.

    Claim: LABEL-RR. Reporting the true class with this probability, and otherwise one of the
        others uniformly, is epsilon-DP.
    Relation: two label tables that differ in one node's label.
    Assumes: one response per label, however often it is sent; a second draw costs epsilon again.
    Moves: one row.
    Tight: yes, the ratio keep / flip is e^epsilon, and no epsilon-DP channel on k classes keeps
        the label more often.
    Proof: docs/claims/LABEL-RR.md.

    >>> round(keep_probability(epsilon=1.0, num_classes=2), 2)
    0.73
    """
    expect(
        SMALLEST_EPSILON <= epsilon < math.inf,
        name="epsilon",
        wanted=f"a finite epsilon >= {SMALLEST_EPSILON}",
        got=epsilon,
        remedy="for less, send no labels; for no privacy, send the labels themselves",
    )
    expect_count("num_classes", num_classes, at_least=2)
    return ROUND_DOWN / (1 + (num_classes - 1) * math.exp(-epsilon))


def flip_probability(*, epsilon: float, num_classes: int) -> float:
    """Probability of each single other class: what `keep_probability` leaves, in equal parts."""
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    return (1 - keep) / (num_classes - 1)


def epsilon_of_keep(*, keep: float, num_classes: int) -> float:
    """log(keep / flip), rounded up: epsilon of a response that keeps with this probability.

    Raises:
        InputError: keep is not in [1 / num_classes, 1].
    """
    expect_count("num_classes", num_classes, at_least=2)
    expect(
        1 / num_classes <= keep <= 1,
        name="keep",
        wanted=f"1/{num_classes} <= keep <= 1",
        got=keep,
        remedy="take it from keep_probability()",
    )
    if keep == 1:
        return math.inf
    # log(keep (k - 1) / (1 - keep)) = log1p((keep k - 1) / (1 - keep)), exact near keep = 1/k
    excess = max(0.0, keep * num_classes - 1) / (1 - keep)
    return math.log1p(excess) * (1 + 2.0**-49) + 2.0**-50


def transition(*, epsilon: float, num_classes: int) -> NDArray[np.float64]:
    """T[true, seen], for a forward-corrected loss; (num_classes, num_classes)."""
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    flip = flip_probability(epsilon=epsilon, num_classes=num_classes)
    return (keep - flip) * np.eye(num_classes) + flip


def inverse_transition(*, epsilon: float, num_classes: int) -> NDArray[np.float64]:
    """T^-1, whose row for a response is an unbiased one-hot label; (num_classes, num_classes)."""
    keep = keep_probability(epsilon=epsilon, num_classes=num_classes)
    flip = flip_probability(epsilon=epsilon, num_classes=num_classes)
    return (np.eye(num_classes) - flip) / (keep - flip)


def unbiased_weights(
    responses: NDArray[np.integer], *, epsilon: float, num_classes: int
) -> NDArray[np.float64]:
    """Weights of the class losses in the unbiased loss, (num_labels, num_classes); rows sum to 1.

    Some are negative, down to -flip / (keep - flip): their mean over the response is the one-hot
    row of the true class, at the price of a variance that grows as epsilon falls.

    >>> unbiased_weights(np.array([1]), epsilon=1.0, num_classes=2).round(2).tolist()
    [[-0.58, 1.58]]
    """
    _expect_labels(responses, num_classes)
    inverse = inverse_transition(epsilon=epsilon, num_classes=num_classes)
    return np.take(inverse, responses, axis=0)  # (num_labels, num_classes)


def response_posterior(posterior: NDArray[np.floating], *, epsilon: float) -> NDArray[np.float64]:
    """Probability of each response when the true class has this posterior: p T, same shape.

    The forward-corrected loss is the cross-entropy of this with the responses seen.
    """
    num_classes = posterior.shape[-1]
    forward = posterior @ transition(epsilon=epsilon, num_classes=num_classes)
    return np.asarray(forward, dtype=np.float64)


def forward_targets(
    posterior: NDArray[np.floating], responses: NDArray[np.integer], *, epsilon: float
) -> NDArray[np.float64]:
    """Posterior of the true class given a response, (num_labels, num_classes); rows sum to 1.

        target[c] = p[c] T[c, seen] / (p T)[seen]

    Cross-entropy against these targets, held fixed, has the gradient p - target with respect to
    the logits, which is that of the forward-corrected loss. So any learner that accepts soft
    labels can use it.
    """
    _expect_labels(responses, posterior.shape[-1])
    forward = transition(epsilon=epsilon, num_classes=posterior.shape[-1])
    joint = posterior * forward[:, responses].T  # (num_labels, num_classes)
    return np.asarray(joint / joint.sum(axis=-1, keepdims=True), dtype=np.float64)


def _expect_labels(responses: NDArray[np.integer], num_classes: int) -> None:
    outside = responses[(responses < 0) | (responses >= num_classes)]
    expect(
        outside.size == 0,
        name="responses",
        wanted=f"classes from 0 to {num_classes - 1}",
        got=outside[:3].tolist(),
        remedy="leave out nodes without a label",
    )
