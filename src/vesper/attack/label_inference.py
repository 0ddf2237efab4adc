"""Attack by the data party: labels of training nodes, from what the label party sends back.

    from label posteriors   score(v, c) = label posterior of v for class c, if they are shared
    from gradients          score(v, c) = -(sum of gradients with respect to v's embedding)[c]

The gradient of a cross-entropy with respect to the logit of class c is p_c - 1[c = label], which is
negative for the label only, however good the model is (Li et al. 2022 for two classes). Embeddings
of the certified plan are logits, one coordinate per class. Where they are not, the attacker fits
one direction per class on a tenth of the nodes, whose labels it knows. Each pair of a node and a
class is one guess; positives are the pairs with the true class.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.attack.attack_result import AttackResult
from vesper.attack.rerun import open_parties, read_config, refuse_other_run, retrain
from vesper.attack.roc import roc_of
from vesper.errors import InputError
from vesper.graph.labels import nodes_of_label_rows
from vesper.model.objective_factory import task_of
from vesper.progress import Progress, no_progress
from vesper.simulation.recording import FeedbackRecordingMethod, FeedbackRecordingRepresentation

Scores = NDArray[np.float64]

KNOWN_SHARE = 0.1
"""Share of training nodes whose labels the attacker already knows, to fit directions with."""

KNOWS_LABEL_POSTERIORS = "the label posteriors of training nodes, which the contract shares"
KNOWS_GRADIENTS = (
    "every gradient it received, and a tenth of the labels if it has to fit directions"
)


def attack_labels(
    run: Path, folder: Path, *, seed: int = 0, progress: Progress = no_progress
) -> AttackResult:
    """Repeat a run and guess labels of training nodes.

    Args:
        run: run folder.
        folder: folder with `data/` and `label/`.
        seed: seed of the draw of labels that the attacker already knows.
        progress: receives progress reports.

    Raises:
        InputError: `run` is no run folder, or the labels are not classes.
    """
    config = read_config(run)
    data, labels = open_parties(folder, config)
    if task_of(config.run.task, labels.classes) != "classification":
        raise InputError("label-inference: expected a run with classes as labels, got numbers")
    run_spec, _, method, trained = retrain(
        config, data, labels, wrap_method=FeedbackRecordingMethod, progress=progress
    )
    refuse_other_run(run, folder, trained)
    rows = labels.rows("train")
    nodes, truth = nodes_of_label_rows(data, labels)[rows], labels.labels[rows]
    scores, scored, knows = _score_nodes(method.recording, nodes, truth, len(labels.classes), seed)
    is_true = np.arange(scores.shape[1])[None, :] == truth[scored][:, None]
    return AttackResult(
        attack="label-inference",
        method=config.run.method,
        plan=run_spec.noise_plan.plan,
        epsilon=config.privacy.label_epsilon or float("inf"),
        roc=roc_of(scores[is_true], scores[~is_true]),
        by_degree=(),
        knows=knows,
        seed=seed,
    )


def _score_nodes(
    recording: FeedbackRecordingRepresentation,
    nodes: NDArray[np.int64],
    truth: NDArray[np.int64],
    num_classes: int,
    seed: int,
) -> tuple[Scores, NDArray[np.int64], str]:
    """Scores (scored, num_classes), which rows are scored, and what the attacker knows."""
    all_rows = np.arange(len(nodes))
    posteriors = recording.label_posteriors
    if posteriors is not None and len(posteriors):
        posterior_of = dict(zip(recording.labelled_nodes.tolist(), posteriors, strict=True))
        label_posteriors = np.stack([posterior_of[node] for node in nodes.tolist()]).astype(
            np.float64
        )
        return label_posteriors, all_rows, KNOWS_LABEL_POSTERIORS
    gradients = recording.gradients()
    if gradients is None:
        raise InputError("label-inference: expected a run that trains, found no gradients")
    descents = -gradients[nodes]  # (training nodes, width)
    if descents.shape[1] == num_classes:
        return descents, all_rows, KNOWS_GRADIENTS
    known = np.random.default_rng(seed).random(len(nodes)) < KNOWN_SHARE
    return _by_directions(descents, truth, known, num_classes), all_rows[~known], KNOWS_GRADIENTS


def _by_directions(
    descents: Scores, truth: NDArray[np.int64], known: NDArray[np.bool_], num_classes: int
) -> Scores:
    """Fit one direction per class by ridge regression on known labels; score the other nodes."""
    size = np.linalg.norm(descents, axis=1, keepdims=True)
    rows = np.divide(descents, size, out=np.zeros_like(descents), where=size > 0)
    targets = np.eye(num_classes)[truth[known]]
    gram = rows[known].T @ rows[known] + 1e-3 * np.eye(rows.shape[1])
    directions = np.linalg.solve(gram, rows[known].T @ (targets - targets.mean(axis=0)))
    return np.asarray(rows[~known] @ directions)
