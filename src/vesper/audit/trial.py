"""One run with some of the canaries present, and what it reveals about each of them.

| observed | score of a canary |
| --- | --- |
| releases through the door | exact log likelihood ratio (`mechanism.likelihood`) |
| a graph of noisy edges | share of the canary's edges that are in it |
| rows of the paper's plan | exact log likelihood ratio of two worlds (`twin`), where it exists |
| anything else | none yet: rows of its nodes, to learn a score from |

Doors, parties, session and protocol are those of a real run. Noise comes from a separate seed for
each run, everything public from the seed of the config.

`draw_pairs` and `draw_nodes` choose which edges and nodes of party folders become canaries.

`fit_discriminant` learns a score from runs whose canaries are known, by Fisher's linear
discriminant:

    score(x) = <w, x>,   w = (covariance + ridge)^-1 (mean with the edge - mean without)

For Gaussian noise of equal size in all directions this is the likelihood ratio, up to the error in
the estimated means. It is learned on the first half of the runs and used on the second.
"""

import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vesper.audit.canaries import Canaries, Coins
from vesper.audit.twin import TwinMethod
from vesper.errors import InputError
from vesper.graph.edges import Pairs, degrees_of, edges_at
from vesper.graph.features import Features
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings, nodes_of_label_rows
from vesper.mechanism.door import Door
from vesper.mechanism.likelihood import world_ratios
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.recording_door import RecordingDoor
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.baselines.sampled import SampledMethod
from vesper.method.options import MOVES_OTHERS
from vesper.method.settings import Config
from vesper.party.representation import Representation
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH
from vesper.privacy.ledger.store import Ledger
from vesper.session.doors import open_door
from vesper.session.label_responses import simulate_label_responses
from vesper.session.run_spec import RunSpec, run_spec_for
from vesper.simulation.in_process import train
from vesper.simulation.recording import RecordingMethod, RowRecordingMethod, row_noise_of


def draw_pairs(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> Pairs:
    """Draw pairs of nodes of one split; no node is drawn twice.

    Raises:
        InputError: the split has too few nodes.
    """
    nodes = nodes_of_label_rows(data, labels)[labels.rows(split)]
    if len(nodes) < 2 * count:
        raise InputError(
            f"{labels.path}, column split: expected at least {2 * count} rows with '{split}' for "
            f"{count} canary edges, found {len(nodes)}; use fewer with --canaries"
        )
    drawn = np.random.default_rng(seed).permutation(nodes)[: 2 * count]
    return np.sort(drawn.reshape(-1, 2), axis=1)


def draw_nodes(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> NDArray[np.int64]:
    """Choose the nodes of one split with the most neighbours, no two of which share a node.

    Nodes with many neighbours reveal most. The result is shorter than `count` if there are too few.

    Raises:
        InputError: no node of the split has an edge.
    """
    nodes = np.random.default_rng(seed).permutation(
        nodes_of_label_rows(data, labels)[labels.rows(split)]
    )
    nodes = nodes[np.argsort(-degrees_of(data.graph)[nodes], kind="stable")]
    is_used, chosen = np.zeros(data.graph.num_nodes, dtype=bool), list[int]()
    for node in nodes.tolist():
        around = edges_at(data.graph, node)
        if len(chosen) == count or not len(around):
            break
        if not is_used[around].any():
            is_used[around] = True
            chosen.append(node)
    if not chosen:
        raise InputError(
            f"{labels.path}, column split: expected a row with '{split}' whose node has an edge, "
            f"found none; use another graph, or canary edges with --unit edge"
        )
    return np.array(chosen, dtype=np.int64)


Rows = NDArray[np.float64]

RIDGE = 0.05
"""Ridge, as a share of the mean variance; it is added to every variance."""


@dataclass(frozen=True, eq=False)
class Discriminant:
    """A direction, and the midpoint of the two means along it."""

    direction: Rows
    middle: float

    def score(self, rows: Rows) -> Rows:
        """Project rows, (runs, width), to scores, (runs,)."""
        return np.asarray(rows @ self.direction)


def fit_discriminant(with_edge: Rows, without_edge: Rows) -> Discriminant:
    """Fit a discriminant to rows with and without the edge, (runs, width) each."""
    first, second = with_edge.mean(axis=0), without_edge.mean(axis=0)
    residuals = np.concatenate([with_edge - first, without_edge - second])  # (runs, width)
    covariance = residuals.T @ residuals / max(len(residuals) - 2, 1)
    variance = float(np.trace(covariance)) / len(covariance)
    covariance += (RIDGE * variance + 1e-12) * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, first - second)
    return Discriminant(direction, float((first + second) @ direction / 2))


Kind = Literal["release", "flipped edges", "noisy edges", "two worlds", "learned"]

NEGLIGIBLE_SHARE = 1e-4
"""Share of the squared distance of two worlds that may lie in rows of other nodes."""


@dataclass(frozen=True, eq=False)
class TrialOutcome:
    """What one run reveals about the canaries."""

    scores: NDArray[np.float64] | None
    """(num_canaries,); None if a score must be learned first."""
    mu_squared: NDArray[np.float64] | None
    """(num_canaries,) squared distance of the worlds in units of the promised noise, if known."""
    rows: NDArray[np.float64] | None
    """(num_canaries, width) to learn a score from."""


def observe(
    canaries: Canaries, config: Config, coins: Coins, *, kind: Kind, noise_seed: int
) -> TrialOutcome:
    """Run once with the canaries that `coins` selects, and score every canary."""
    data = canaries.holdings(coins)
    run_spec = run_spec_for(config, data, canaries.labels)
    if kind == "two worlds":
        other = canaries.graph(~coins)
        twin = TwinMethod(run_spec.method, other=other, noise_seed=noise_seed)
        _run(replace(run_spec, method=twin), data, canaries, noise_seed)
        return _twin_outcome(twin, canaries, coins)
    if kind == "learned":
        method = RowRecordingMethod(run_spec.method, noise_seed=noise_seed)
        _run(replace(run_spec, method=method), data, canaries, noise_seed)
        sums = method.recorder.sums
        assert sums is not None
        return TrialOutcome(None, None, canaries.endpoint_rows(sums))
    door = _run(run_spec, data, canaries, noise_seed)
    if door.noisy_graphs:
        return TrialOutcome(canaries.shares_in(door.noisy_graphs[0]), None, None)
    # Graphs with all canaries and with none serve every canary: the others change other rows.
    with_all, without = canaries.graph_with_all, canaries.data.graph
    ratios = [world_ratios(each, with_all, without) for each in door.releases]
    return TrialOutcome(
        canaries.sum_over_nodes(np.sum([each.log_ratios for each in ratios], axis=0)),
        canaries.sum_over_nodes(np.sum([each.mu_squared for each in ratios], axis=0)),
        None,
    )


def _twin_outcome(twin: TwinMethod, canaries: Canaries, coins: Coins) -> TrialOutcome:
    ratio = canaries.sum_over_nodes(twin.twin.log_ratios)
    return TrialOutcome(
        np.where(coins, ratio, -ratio), canaries.sum_over_nodes(twin.twin.mu_squared), None
    )


def _run(
    run_spec: RunSpec, data: DataHoldings, canaries: Canaries, noise_seed: int
) -> RecordingDoor:
    with (
        tempfile.TemporaryDirectory(prefix="vesper-audit-") as folder,
        closing(Ledger(Path(folder) / "ledger.sqlite", clock=time.time)) as ledger,
    ):
        noise = NoiseSource.for_simulation(noise_seed)
        door, run_spec = open_door(
            run_spec, data.graph, ledger, noise, name=SIMULATED_GRAPH, run="audit"
        )
        recording = RecordingDoor(door)
        responses = simulate_label_responses(run_spec.config, canaries.labels)
        train(run_spec, data, canaries.labels, recording, responses=responses)
    return recording


def kind_of(canaries: Canaries, config: Config) -> Kind:
    """Determine what there is to observe, by one run without any canary."""
    run_spec = run_spec_for(config, canaries.data, canaries.labels)
    method = _NoiseDetector(run_spec.method)
    door = _run(replace(run_spec, method=method), canaries.data, canaries, 0)
    if door.releases:
        return "release"
    if door.noisy_graphs:
        return "flipped edges" if door.flips_edges_independently else "noisy edges"
    is_exact = (
        method.is_noisy
        and config.privacy.hops == 1
        and config.run.dropout == 0
        and canaries.largest_degree <= config.privacy.max_degree
    )
    return "two worlds" if is_exact else "learned"


def are_independent(canaries: Canaries, config: Config, kind: Kind) -> bool:
    """Whether observations of one canary are independent of all other canaries.

    Rows of a release have independent noise and share no message, unless an edge also changes rows
    of other nodes (clamped degrees); flipped edges are independent too. In two worlds it depends:
    degrees must not matter (GIN), and the first canary, in a run with all others present, must
    change no rows but those of its own nodes.
    """
    if kind != "two worlds":
        moves_others = config.privacy.aggregator in MOVES_OTHERS
        return kind == "flipped edges" or (kind == "release" and not moves_others)
    others = np.arange(len(canaries)) > 0
    data = canaries.holdings(others)
    run_spec = run_spec_for(config, data, canaries.labels)
    method = run_spec.method
    if not isinstance(method, SampledMethod) or method.aggregator(config) != "gin":
        return False
    twin = TwinMethod(method, other=canaries.graph_with_all, noise_seed=0)
    _run(replace(run_spec, method=twin), data, canaries, 0)
    distances = twin.twin.mu_squared
    elsewhere = distances.sum() - canaries.sum_over_nodes(distances)[0]
    return bool(elsewhere <= NEGLIGIBLE_SHARE * distances.sum())


class _NoiseDetector(RecordingMethod):
    """Records whether the data side adds noise to rows."""

    is_noisy = False

    def make_representation(
        self,
        config: Config,
        sizes: PublicSizes,
        *,
        noise_plan: NoisePlan,
        features: Features,
        door: Door,
    ) -> Representation:
        """Make the method's representation and look for row noise."""
        representation = super().make_representation(
            config, sizes, noise_plan=noise_plan, features=features, door=door
        )
        self.is_noisy = row_noise_of(representation) is not None
        return representation
