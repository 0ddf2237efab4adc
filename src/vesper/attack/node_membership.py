"""Node membership: train on a subgraph, query on the full graph (the paper's appendix).

    target    the settings of the run, trained on half of the labelled nodes and the edges between
    queries   posteriors of members and others, on the full graph
    members   training nodes of the target;   others: labelled nodes outside its subgraph
    shadow    the same settings on up to 1000 nodes per class; half are inside its subgraph

A guarantee about edges does not cover this attack; the paper measures it all the same. A guarantee
about nodes covers what the edges of a member reveal, not what its features and label do.

Members are recognised by their posteriors alone:

| classes | score of a node | learned from |
| --- | --- | --- |
| two | -entropy of its posterior (Song and Mittal 2021) | nothing |
| more | three-layer perceptron on the sorted posterior (Olatunji et al. 2021) | a shadow model |
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from vesper.attack.attack_result import AttackResult, by_degree
from vesper.attack.rerun import Rerun, open_parties, read_config, rerun, simulated_door
from vesper.attack.roc import roc_of
from vesper.errors import InputError
from vesper.graph.edges import degrees_of, induced_subgraph
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings, nodes_of_label_rows
from vesper.method.settings import Config
from vesper.model.encoders import initialize
from vesper.model.objective_factory import task_of
from vesper.progress import Progress, no_progress
from vesper.session.label_responses import simulate_label_responses
from vesper.session.label_side import label_objective

Posteriors = NDArray[np.float64]
"""(nodes, num_classes)."""

WIDTHS = (64, 32)
EPOCHS, LEARNING_RATE, WEIGHT_DECAY = 200, 0.01, 1e-4
SMALLEST = 1e-12


def certainty(posteriors: Posteriors) -> NDArray[np.float64]:
    """Negative entropy of each posterior: (nodes,).

    >>> certainty(np.array([[1.0, 0.0]])).round(6).tolist()
    [-0.0]
    """
    clipped = np.clip(posteriors, SMALLEST, 1.0)
    return np.asarray((clipped * np.log(clipped)).sum(axis=1))


class MembershipClassifier:
    """Learns to recognise members of a shadow model; applied to posteriors of the target."""

    def __init__(self, num_classes: int, *, seed: int) -> None:
        first, second = WIDTHS
        self._network = nn.Sequential(
            nn.Linear(num_classes, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, 1),
        )
        initialize(self._network, seed)

    def learn(self, members: Posteriors, others: Posteriors) -> None:
        """Fit the network; members and others have the same total weight."""
        rows = torch.cat([_inputs(members), _inputs(others)])
        targets = torch.cat([torch.ones(len(members)), torch.zeros(len(others))])
        weights = torch.where(targets > 0, 1 / len(members), 1 / len(others))
        optimizer = torch.optim.Adam(
            self._network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            scores = self._network(rows)[:, 0]
            loss = F.binary_cross_entropy_with_logits(
                scores, targets, weight=weights, reduction="sum"
            )
            torch.autograd.backward([loss])
            optimizer.step()

    @torch.no_grad()
    def score(self, posteriors: Posteriors) -> NDArray[np.float64]:
        """Score posteriors; higher means more likely a member: (nodes,)."""
        scores: NDArray[np.float64] = self._network(_inputs(posteriors))[:, 0].double().numpy()
        return scores


def _inputs(posteriors: Posteriors) -> torch.Tensor:
    """Log posteriors in descending order: the class itself is no evidence of membership."""
    ordered = -np.sort(-posteriors, axis=1)
    return torch.from_numpy(np.log(np.clip(ordered, 1e-6, 1.0)).astype(np.float32))


SHADOW_NODES_PER_CLASS = 1000
VALIDATION_ONE_IN = 5
"""One node in this many of a subgraph is used for validation."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelledSubgraph:
    """Inputs of both parties, restricted to some labelled nodes."""

    data: DataHoldings
    labels: LabelHoldings
    members: Rows
    """Training nodes, as node numbers of the whole graph."""
    nodes: Rows
    """All nodes of the subgraph, as node numbers of the whole graph."""


def attack_membership(
    run: Path, folder: Path, *, seed: int, progress: Progress = no_progress
) -> AttackResult:
    """Train target and shadow with the settings of a run, and score membership."""
    return attack_settings(read_config(run), folder, seed=seed, progress=progress)


def attack_settings(
    config: Config, folder: Path, *, seed: int, progress: Progress = no_progress
) -> AttackResult:
    """Attack settings without a run: target and shadow are trained here in any case.

    Args:
        config: checked settings.
        folder: folder with `data/` and `label/`.
        seed: seed of the draw of nodes.
        progress: receives progress reports.

    Raises:
        InputError: the labels are not classes.
    """
    data, labels = open_parties(folder, config)
    if task_of(config.run.task, labels.classes) != "classification":
        raise InputError(
            "node-membership: expected classes as labels, got numbers, which have no posteriors"
        )
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(labels.ids))
    target = _subgraph(data, labels, rows[: len(rows) // 2], rng)
    trained = rerun(config, target.data, target.labels, progress=progress)
    nodes = nodes_of_label_rows(data, labels)
    others = np.setdiff1d(nodes, target.nodes)
    queried = np.concatenate([target.members, others])
    target_posteriors = posteriors_of(trained, config, data, labels, target, queried)
    if len(labels.classes) == 2:
        scores, knows = certainty(target_posteriors), "posteriors on the full graph"
    else:
        scores = _by_shadow(
            config, data, labels, target_posteriors, rng=rng, seed=seed, progress=progress
        )
        knows = "posteriors on the full graph, settings, and a shadow set"
    is_member = np.arange(len(queried)) < len(target.members)
    return AttackResult(
        attack="node-membership",
        method=config.run.method,
        plan=trained.noise_plan.plan,
        epsilon=config.privacy.epsilon,
        roc=roc_of(scores[is_member], scores[~is_member]),
        by_degree=by_degree(scores, is_member, degrees_of(data.graph)[queried]),
        knows=knows,
        seed=seed,
    )


def _by_shadow(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    target_posteriors: Posteriors,
    *,
    rng: np.random.Generator,
    seed: int,
    progress: Progress,
) -> NDArray[np.float64]:
    """Score posteriors with a classifier that was trained on a shadow model."""
    nodes_of_class = [
        rng.permutation(np.flatnonzero(labels.labels == code))[:SHADOW_NODES_PER_CLASS]
        for code in range(len(labels.classes))
    ]
    pool = rng.permutation(np.concatenate(nodes_of_class))
    inside = _subgraph(data, labels, pool[: len(pool) // 2], rng)
    whole = _subgraph(data, labels, pool, rng)
    shadow = rerun(config, inside.data, inside.labels, progress=progress)
    members = np.searchsorted(whole.nodes, inside.members)
    others = np.searchsorted(whole.nodes, np.setdiff1d(whole.nodes, inside.nodes))
    inside_of_whole = replace(inside, members=members)
    posteriors = posteriors_of(
        shadow, config, whole.data, whole.labels, inside_of_whole, np.concatenate([members, others])
    )
    classifier = MembershipClassifier(len(labels.classes), seed=seed)
    classifier.learn(posteriors[: len(members)], posteriors[len(members) :])
    return classifier.score(target_posteriors)


@torch.no_grad()
def posteriors_of(
    trained: Rerun,
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    subgraph: LabelledSubgraph,
    nodes: Rows,
) -> Posteriors:
    """Posteriors of nodes of a larger graph, by a model of a subgraph: (nodes, num_classes)."""
    sizes = replace(trained.run_spec.sizes, num_nodes=data.graph.num_nodes)
    run_spec = replace(trained.run_spec, sizes=sizes).planned_for(config)
    inner, method = trained.recorder.inner, run_spec.method
    with simulated_door(run_spec, data) as (door, run_spec):
        side = method.make_representation(
            run_spec.config,
            sizes,
            noise_plan=run_spec.noise_plan,
            features=data.features,
            door=door,
        )
        side.load_fitted(inner.fitted_arrays())
        side.module.load_state_dict(inner.module.state_dict())
        if config.run.label_messages:
            responses = simulate_label_responses(config, subgraph.labels)
            objective = label_objective(config, subgraph.labels, responses)
            side.set_labels(
                subgraph.members, objective.label_posteriors(np.arange(len(subgraph.members)))
            )
        for stage in range(method.stages(run_spec.config, sizes)):
            side.begin_stage(stage)
        side.module.eval()
        embeddings = side.embed(nodes, training=False)
    label_side = trained.trained.label_side
    label_side.module.eval()
    scores = label_side.decode(embeddings, trained.trained.best_stage)
    posteriors: Posteriors = scores.double().softmax(dim=1).numpy()
    return posteriors


def _subgraph(
    data: DataHoldings, labels: LabelHoldings, rows: Rows, rng: np.random.Generator
) -> LabelledSubgraph:
    """Restrict to some labelled nodes and the edges between them; a fifth are for validation."""
    nodes = nodes_of_label_rows(data, labels)[rows]
    order = np.argsort(nodes)
    rows, nodes = rows[order], nodes[order]  # nodes must stay in ascending order
    splits = np.zeros(len(rows), dtype=np.int8)
    splits[rng.permutation(len(rows))[: max(2, len(rows) // VALIDATION_ONE_IN)]] = 1
    return LabelledSubgraph(
        data=replace(
            data,
            ids=Ids(data.ids.values.take(nodes)),
            features=data.features[nodes],
            graph=induced_subgraph(data.graph, nodes),
        ),
        labels=replace(
            labels,
            ids=Ids(labels.ids.values.take(rows)),
            labels=labels.labels[rows],
            splits=splits,
        ),
        members=nodes[splits == 0],
        nodes=nodes,
    )
