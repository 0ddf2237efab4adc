"""Node membership: trained on a subgraph, asked on the full graph (the paper's appendix).

    target    the settings of the run, trained on half of the labelled nodes and the edges between
    asked     posteriors of all labelled nodes, on the full graph
    members   its training nodes;   others: labelled nodes outside its subgraph
    shadow    the same settings on up to 1000 nodes a class; half of them train, half do not

A guarantee about edges does not cover this; the paper measures it all the same. One about nodes
covers what the edges of a member tell, not what its features and label do.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.attack.membership_classifier import MembershipClassifier, Posteriors, certainty
from vesper.attack.rerun import Rerun, open_parties, read_config, repeat, simulated_door
from vesper.attack.result import Attacked, by_degree
from vesper.attack.roc import roc_of
from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.induced import induced
from vesper.graph.labelled import labelled_nodes
from vesper.graph.labels import LabelHoldings
from vesper.graph.pairs import degrees_of
from vesper.method.settings import Config
from vesper.model.objectives import task_of
from vesper.progress import Progress, silent
from vesper.run.ends.label_end import objective_of
from vesper.run.label_responses import simulated_responses

SHADOW_NODES_A_CLASS = 1000
VALIDATION_SHARE = 5
"""One in so many nodes of a subgraph judges its training."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """What both parties hold of some labelled nodes."""

    data: DataHoldings
    labels: LabelHoldings
    members: Rows
    """Training nodes, as nodes of the whole graph."""
    nodes: Rows
    """All its nodes, as nodes of the whole graph."""


def attack_membership(
    run: Path, folder: Path, *, seed: int, progress: Progress = silent
) -> Attacked:
    """Train target and shadow with the settings of a run, and tell members from others."""
    return attack_settings(read_config(run), folder, seed=seed, progress=progress)


def attack_settings(
    config: Config, folder: Path, *, seed: int, progress: Progress = silent
) -> Attacked:
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
    trained = repeat(config, target.data, target.labels, progress=progress)
    nodes = labelled_nodes(data, labels)
    others = np.setdiff1d(nodes, target.nodes)
    asked = np.concatenate([target.members, others])
    answers = posteriors_of(trained, config, data, labels, target, asked)
    if len(labels.classes) == 2:
        scores, knows = certainty(answers), "posteriors on the full graph"
    else:
        scores = _by_shadow(config, data, labels, answers, rng, seed, progress)
        knows = "posteriors on the full graph, settings, and a shadow set"
    is_member = np.arange(len(asked)) < len(target.members)
    return Attacked(
        attack="node-membership",
        method=config.run.method,
        plan=trained.promise.plan,
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
    shadow = repeat(config, inside.data, inside.labels, progress=progress)
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
    subgraph: Subgraph,
    nodes: Rows,
) -> Posteriors:
    """Ask a model trained on a subgraph about nodes of a larger graph: (nodes, num_classes)."""
    sizes = replace(trained.agreement.sizes, num_nodes=data.graph.num_nodes)
    agreement = replace(trained.agreement, config=config, sizes=sizes)
    inner, method = trained.shown.inner, agreement.method
    with simulated_door(agreement, data) as (door, agreement):
        side = method.data_side(agreement.config, sizes, features=data.features, door=door)
        side.keep_to(inner.fitted())
        side.module.load_state_dict(inner.module.state_dict())
        if config.run.label_messages:
            responses = simulated_responses(config, subgraph.labels)
            objective = objective_of(config, subgraph.labels, responses)
            side.hear(subgraph.members, objective.voices(np.arange(len(subgraph.members))))
        for stage in range(method.stages(agreement.config, sizes)):
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
) -> Subgraph:
    """Some labelled nodes, the edges between them, and a fifth of them for validation."""
    nodes = labelled_nodes(data, labels)[rows]
    order = np.argsort(nodes)
    rows, nodes = rows[order], nodes[order]  # nodes stay in ascending order
    splits = np.zeros(len(rows), dtype=np.int8)
    splits[rng.permutation(len(rows))[: max(2, len(rows) // VALIDATION_SHARE)]] = 1
    return Subgraph(
        data=replace(
            data,
            ids=Ids(data.ids.values.take(nodes)),
            features=data.features[nodes],
            graph=induced(data.graph, nodes),
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
