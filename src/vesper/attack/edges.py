"""Attacks on edges: draw pairs with and without an edge, score them, judge the scores."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.attack import edge_influence, edge_likelihood, edge_similarity
from vesper.attack.attack_result import AttackResult, by_degree
from vesper.attack.rerun import Rerun, open_parties, read_config, refuse_other_run, rerun
from vesper.attack.roc import RowRatios, roc_of
from vesper.errors import InputError
from vesper.graph.edges import Pairs, degrees_of, draw_edges, draw_non_edges, induced_subgraph
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings, nodes_of_label_rows
from vesper.method.baselines.sampled import SampledMethod
from vesper.method.registry import find_method
from vesper.progress import Progress, no_progress

Score = Callable[[Rerun, Pairs, RowRatios], NDArray[np.float64]]

ATTACKS: dict[str, tuple[Score, str]] = {
    "edge-likelihood": (edge_likelihood.score_likelihood, edge_likelihood.LIKELIHOOD_KNOWS),
    "edge-influence": (
        lambda run, pairs, rows: edge_influence.score_influence(run, pairs),
        edge_influence.INFLUENCE_KNOWS,
    ),
    "edge-similarity": (
        lambda run, pairs, rows: edge_similarity.score_similarity(run, pairs),
        edge_similarity.SIMILARITY_KNOWS,
    ),
}


def attack_edges(
    attack: str, run: Path, folder: Path, *, pairs: int, seed: int, progress: Progress = no_progress
) -> AttackResult:
    """Repeat a run and guess edges between labelled nodes.

    Args:
        attack: one of `ATTACKS`.
        run: run folder.
        folder: holds `data/` and `label/`.
        pairs: with an edge, and as many without.
        seed: of the draw.
        progress: is told how far it is.

    Raises:
        InputError: no run folder, or too few pairs to judge by.
    """
    if pairs < 1:
        raise InputError(f"--pairs: expected at least 1, got {pairs}")
    score, knows = ATTACKS[attack]
    config = read_config(run)
    data, labels = open_parties(folder, config)
    edges, others = _draw_pairs(data, labels, pairs, np.random.default_rng(seed))
    asked = np.concatenate([edges, others])
    method = find_method(config.run.method)
    is_gin = isinstance(method, SampledMethod) and method.aggregator(config) == "gin"
    rows = RowRatios(data, asked, is_gin=is_gin)
    again = rerun(config, data, labels, row_observer=rows, progress=progress)
    refuse_other_run(run, folder, again.trained)
    scores = score(again, asked, rows)
    is_edge = np.arange(len(asked)) < len(edges)
    degrees = degrees_of(data.graph)[asked].min(axis=1)
    return AttackResult(
        attack=attack,
        method=config.run.method,
        plan=again.noise_plan.plan,
        epsilon=config.privacy.epsilon,
        roc=roc_of(scores[is_edge], scores[~is_edge]),
        by_degree=by_degree(scores, is_edge, degrees),
        knows=knows,
        seed=seed,
    )


def _draw_pairs(
    data: DataHoldings, labels: LabelHoldings, count: int, rng: np.random.Generator
) -> tuple[Pairs, Pairs]:
    """Pairs of labelled nodes: the label party sees no others."""
    labelled = np.sort(nodes_of_label_rows(data, labels))
    between = induced_subgraph(data.graph, labelled)
    edges = draw_edges(between, count, rng=rng)
    if len(edges) == 0:
        raise InputError(f"{labels.path}: expected edges between labelled nodes, found none")
    return labelled[edges], labelled[draw_non_edges(between, len(edges), rng=rng)]
