"""The data party guesses labels of training nodes from what comes back to it.

    from voices      score(v, c) = what v said of class c                where labels are lent
    from gradients   score(v, c) = -(sum of gradients of v's embedding)[c]

The gradient of a cross-entropy by the logit of class c is p_c - 1[c = label]: negative at the
label alone, however good the model is (Li et al. 2022 for two classes). Embeddings of the certified
plan are logits, one coordinate a class; where they are not, the attacker needs a few labels to find
directions, and fits them on a tenth of the nodes. Each pair of a node and a class is one guess:
positives are those with the true class.
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
"""Of the training nodes: labels that the attacker has anyway, to find directions by."""

KNOWS_LABEL_POSTERIORS = "what training nodes say of themselves, as the contract lends it"
KNOWS_GRADIENTS = "every gradient it received, and a tenth of the labels where it needs directions"


def attack_labels(
    run: Path, folder: Path, *, seed: int = 0, progress: Progress = no_progress
) -> AttackResult:
    """Repeat a run and guess labels of training nodes.

    Args:
        run: run folder.
        folder: holds `data/` and `label/`.
        seed: of the draw of labels that the attacker has anyway.
        progress: is told how far it is.

    Raises:
        InputError: no run folder, or labels that are no classes.
    """
    config = read_config(run)
    data, labels = open_parties(folder, config)
    if task_of(config.run.task, labels.classes) != "classification":
        raise InputError("label-inference: expected a run on classes, got one on numbers")
    run_spec, _, method, trained = retrain(
        config, data, labels, wrap_method=FeedbackRecordingMethod, progress=progress
    )
    refuse_other_run(run, folder, trained)
    rows = labels.rows("train")
    nodes, truth = nodes_of_label_rows(data, labels)[rows], labels.labels[rows]
    scores, judged, knows = _score_nodes(method.recording, nodes, truth, len(labels.classes), seed)
    is_true = np.arange(scores.shape[1])[None, :] == truth[judged][:, None]
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
    returned: FeedbackRecordingRepresentation,
    nodes: NDArray[np.int64],
    truth: NDArray[np.int64],
    num_classes: int,
    seed: int,
) -> tuple[Scores, NDArray[np.int64], str]:
    """Scores (judged, num_classes), which rows are judged, and what was known."""
    everyone = np.arange(len(nodes))
    if returned.label_posteriors is not None and len(returned.label_posteriors):
        said = dict(zip(returned.labelled_nodes.tolist(), returned.label_posteriors, strict=True))
        label_posteriors = np.stack([said[node] for node in nodes.tolist()]).astype(np.float64)
        return label_posteriors, everyone, KNOWS_LABEL_POSTERIORS
    gradients = returned.gradients()
    if gradients is None:
        raise InputError("label-inference: expected a run that trains, got no gradient")
    pulls = -gradients[nodes]  # (training nodes, width)
    if pulls.shape[1] == num_classes:
        return pulls, everyone, KNOWS_GRADIENTS
    known = np.random.default_rng(seed).random(len(nodes)) < KNOWN_SHARE
    return _by_directions(pulls, truth, known, num_classes), everyone[~known], KNOWS_GRADIENTS


def _by_directions(
    pulls: Scores, truth: NDArray[np.int64], known: NDArray[np.bool_], num_classes: int
) -> Scores:
    """Fit one direction a class by ridge regression on known labels; score the others."""
    size = np.linalg.norm(pulls, axis=1, keepdims=True)
    rows = np.divide(pulls, size, out=np.zeros_like(pulls), where=size > 0)
    wanted = np.eye(num_classes)[truth[known]]
    gram = rows[known].T @ rows[known] + 1e-3 * np.eye(rows.shape[1])
    directions = np.linalg.solve(gram, rows[known].T @ (wanted - wanted.mean(axis=0)))
    return np.asarray(rows[~known] @ directions)
