"""Node membership: trained on a subgraph, asked on the full graph (the paper's appendix).

    target    the settings of the run, trained on half of the labelled nodes and the edges between
    asked     posteriors of all labelled nodes, on the full graph
    members   its training nodes;   others: labelled nodes outside its subgraph
    shadow    the same settings on up to 1000 nodes a class; half of them train, half do not

A guarantee about edges does not cover this; the paper measures it all the same. One about nodes
covers what the edges of a member tell, not what its features and label do.

Who was in training? From posteriors alone.

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
    """Minus the entropy: (nodes,).

    >>> certainty(np.array([[1.0, 0.0]])).round(6).tolist()
    [-0.0]
    """
    clipped = np.clip(posteriors, SMALLEST, 1.0)
    return np.asarray((clipped * np.log(clipped)).sum(axis=1))


class MembershipClassifier:
    """Learns to tell members of a shadow model from others; used on the target's posteriors."""

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
        """Both kinds weigh the same, however many there are."""
        rows = torch.cat([_inputs(members), _inputs(others)])
        wanted = torch.cat([torch.ones(len(members)), torch.zeros(len(others))])
        weights = torch.where(wanted > 0, 1 / len(members), 1 / len(others))
        optimizer = torch.optim.Adam(
            self._network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            scores = self._network(rows)[:, 0]
            loss = F.binary_cross_entropy_with_logits(
                scores, wanted, weight=weights, reduction="sum"
            )
            torch.autograd.backward([loss])
            optimizer.step()

    @torch.no_grad()
    def score(self, posteriors: Posteriors) -> NDArray[np.float64]:
        """(nodes,)."""
        scores: NDArray[np.float64] = self._network(_inputs(posteriors))[:, 0].double().numpy()
        return scores


def _inputs(posteriors: Posteriors) -> torch.Tensor:
    """Logs of the posterior, largest first: the class itself says nothing about membership."""
    ordered = -np.sort(-posteriors, axis=1)
    return torch.from_numpy(np.log(np.clip(ordered, 1e-6, 1.0)).astype(np.float32))


SHADOW_NODES_A_CLASS = 1000
VALIDATION_ONE_IN = 5
"""One in so many nodes of a subgraph judges its training."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelledSubgraph:
    """What both parties hold of some labelled nodes."""

    data: DataHoldings
    labels: LabelHoldings
    members: Rows
    """Training nodes, as nodes of the whole graph."""
    nodes: Rows
    """All its nodes, as nodes of the whole graph."""


def attack_membership(
    run: Path, folder: Path, *, seed: int, progress: Progress = no_progress
) -> AttackResult:
    """Train target and shadow with the settings of a run, and tell members from others."""
    return attack_settings(read_config(run), folder, seed=seed, progress=progress)


def attack_settings(
    config: Config, folder: Path, *, seed: int, progress: Progress = no_progress
) -> AttackResult:
    """The same for settings that nobody has run yet: target and shadow are trained here anyway.

    Args:
        config: checked settings.
        folder: holds `data/` and `label/`.
        seed: of the draw of nodes.
        progress: is told how far it is.

    Raises:
        InputError: labels are no classes.
    """
    data, labels = open_parties(folder, config)
    if task_of(config.run.task, labels.classes) != "classification":
        raise InputError("node-membership: expected a run on classes, whose posteriors it reads")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(labels.ids))
    target = _subgraph(data, labels, rows[: len(rows) // 2], rng)
    trained = rerun(config, target.data, target.labels, progress=progress)
    nodes = nodes_of_label_rows(data, labels)
    others = np.setdiff1d(nodes, target.nodes)
    asked = np.concatenate([target.members, others])
    answers = posteriors_of(trained, config, data, labels, target, asked)
    if len(labels.classes) == 2:
        scores, knows = certainty(answers), "posteriors on the full graph"
    else:
        scores = _by_shadow(config, data, labels, answers, rng, seed, progress)
        knows = "posteriors on the full graph, settings, and a shadow set"
    is_member = np.arange(len(asked)) < len(target.members)
    return AttackResult(
        attack="node-membership",
        method=config.run.method,
        plan=trained.noise_plan.plan,
        epsilon=config.privacy.epsilon,
        roc=roc_of(scores[is_member], scores[~is_member]),
        by_degree=by_degree(scores, is_member, degrees_of(data.graph)[asked]),
        knows=knows,
        seed=seed,
    )


def _by_shadow(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    answers: Posteriors,
    rng: np.random.Generator,
    seed: int,
    progress: Progress,
) -> NDArray[np.float64]:
    """Learn on a shadow model what members look like."""
    drawn = [
        rng.permutation(np.flatnonzero(labels.labels == code))[:SHADOW_NODES_A_CLASS]
        for code in range(len(labels.classes))
    ]
    pool = rng.permutation(np.concatenate(drawn))
    inside = _subgraph(data, labels, pool[: len(pool) // 2], rng)
    whole = _subgraph(data, labels, pool, rng)
    shadow = rerun(config, inside.data, inside.labels, progress=progress)
    members = np.searchsorted(whole.nodes, inside.members)
    others = np.searchsorted(whole.nodes, np.setdiff1d(whole.nodes, inside.nodes))
    here = replace(inside, members=members)
    posteriors = posteriors_of(
        shadow, config, whole.data, whole.labels, here, np.concatenate([members, others])
    )
    classifier = MembershipClassifier(len(labels.classes), seed=seed)
    classifier.learn(posteriors[: len(members)], posteriors[len(members) :])
    return classifier.score(answers)


@torch.no_grad()
def posteriors_of(
    trained: Rerun,
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    subgraph: LabelledSubgraph,
    nodes: Rows,
) -> Posteriors:
    """Ask a model trained on a subgraph about nodes of a larger graph: (nodes, num_classes)."""
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
    """Some labelled nodes, the edges between them, and a fifth of them for validation."""
    nodes = nodes_of_label_rows(data, labels)[rows]
    order = np.argsort(nodes)
    rows, nodes = rows[order], nodes[order]  # nodes stay in ascending order
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
