"""Attacks on edges: draw pairs with and without an edge, score them, evaluate the scores."""

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
        folder: folder with `data/` and `label/`.
        pairs: number of pairs with an edge, and of pairs without.
        seed: seed of the draw of pairs.
        progress: receives progress reports.

    Raises:
        InputError: `run` is no run folder, or there are too few pairs.
    """
    if pairs < 1:
        raise InputError(f"--pairs: expected at least 1, got {pairs}")
    score, knows = ATTACKS[attack]
    config = read_config(run)
    data, labels = open_parties(folder, config)
    edges, others = _draw_pairs(data, labels, pairs, np.random.default_rng(seed))
    candidates = np.concatenate([edges, others])
    method = find_method(config.run.method)
    is_gin = isinstance(method, SampledMethod) and method.aggregator(config) == "gin"
    rows = RowRatios(data, candidates, is_gin=is_gin)
    repeated = rerun(config, data, labels, row_observer=rows, progress=progress)
    refuse_other_run(run, folder, repeated.trained)
    scores = score(repeated, candidates, rows)
    is_edge = np.arange(len(candidates)) < len(edges)
    degrees = degrees_of(data.graph)[candidates].min(axis=1)
    return AttackResult(
        attack=attack,
        method=config.run.method,
        plan=repeated.noise_plan.plan,
        epsilon=config.privacy.epsilon,
        roc=roc_of(scores[is_edge], scores[~is_edge]),
        by_degree=by_degree(scores, is_edge, degrees),
        knows=knows,
        seed=seed,
    )


def _draw_pairs(
    data: DataHoldings, labels: LabelHoldings, count: int, rng: np.random.Generator
) -> tuple[Pairs, Pairs]:
    """Draw pairs of labelled nodes, the only nodes that the label party sees."""
    labelled = np.sort(nodes_of_label_rows(data, labels))
    between = induced_subgraph(data.graph, labelled)
    edges = draw_edges(between, count, rng=rng)
    if len(edges) == 0:
        raise InputError(f"{labels.path}: expected edges between labelled nodes, found none")
    return labelled[edges], labelled[draw_non_edges(between, len(edges), rng=rng)]
