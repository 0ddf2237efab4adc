"""One run with some canaries there and some not, and what it tells about each of them.

| what was watched | score of a canary |
| --- | --- |
| releases through the door | exact log likelihood ratio (`mechanism.likelihood`) |
| a graph of noisy edges | share of its edges that are in it |
| rows of the paper's plan | exact log likelihood ratio of two worlds (`twin`), where it exists |
| anything else | none yet: what was shown of its ends, to learn a score from |

Doors, parties, session and protocol are those of a real run; noise comes from a seed of its own for
each run, everything public from the seed of the config.

Which edges and nodes of party folders become canaries.

A score learned from runs whose answer is known: Fisher's linear discriminant.

score(x) = <w, x>,   w = (covariance + ridge)^-1 (mean with the edge - mean without)

For Gaussian noise of one size in all directions this is the likelihood ratio, but for what is not
known of the means. Learned on the first half of the runs, used on the second.
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
from vesper.graph.labels import LabelHoldings, labelled_nodes
from vesper.mechanism.door import Door
from vesper.mechanism.likelihood import world_ratios
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.recording_door import WatchedDoor
from vesper.method.base import Promise, Sizes
from vesper.method.baselines.sampled import SampledMethod
from vesper.method.settings import Config
from vesper.party.representation import Representation
from vesper.privacy.ledger.store import Ledger
from vesper.session.doors import open_door
from vesper.session.label_responses import simulated_responses
from vesper.session.run_spec import Agreement, agree
from vesper.simulation.in_process import train
from vesper.simulation.recording import ShownMethod, WatchedMethod, row_noise_of


def draw_pairs(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> Pairs:
    """Draw pairs of nodes of one split, no node twice.

    Raises:
        InputError: the split has too few nodes.
    """
    nodes = labelled_nodes(data, labels)[labels.rows(split)]
    if len(nodes) < 2 * count:
        raise InputError(
            f"{labels.path}, column split: expected at least {2 * count} rows with '{split}' for "
            f"{count} canary edges, found {len(nodes)}; ask for fewer with --canaries"
        )
    drawn = np.random.default_rng(seed).permutation(nodes)[: 2 * count]
    return np.sort(drawn.reshape(-1, 2), axis=1)


def draw_nodes(
    data: DataHoldings, labels: LabelHoldings, *, split: str, count: int, seed: int
) -> NDArray[np.int64]:
    """Take nodes of one split that have most neighbours, none of which another one has.

    Those with many neighbours show most. Fewer than `count` where there are no more.

    Raises:
        InputError: no node of the split has an edge.
    """
    nodes = np.random.default_rng(seed).permutation(
        labelled_nodes(data, labels)[labels.rows(split)]
    )
    nodes = nodes[np.argsort(-degrees_of(data.graph)[nodes], kind="stable")]
    taken, drawn = np.zeros(data.graph.num_nodes, dtype=bool), list[int]()
    for node in nodes.tolist():
        around = edges_at(data.graph, node)
        if len(drawn) == count or not len(around):
            break
        if not taken[around].any():
            taken[around] = True
            drawn.append(node)
    if not drawn:
        raise InputError(
            f"{labels.path}, column split: expected a row with '{split}' whose node has an edge, "
            f"found none; there is no canary node to be had"
        )
    return np.array(drawn, dtype=np.int64)


Rows = NDArray[np.float64]

RIDGE = 0.05
"""Share of the mean variance that is added to every variance."""


@dataclass(frozen=True, eq=False)
class Discriminant:
    """A direction, and the point between the two means on it."""

    direction: Rows
    middle: float

    def score(self, rows: Rows) -> Rows:
        """(runs, width) to (runs,)."""
        return np.asarray(rows @ self.direction)


def learn(with_edge: Rows, without_edge: Rows) -> Discriminant:
    """Learn from (runs, width) each."""
    first, second = with_edge.mean(axis=0), without_edge.mean(axis=0)
    apart = np.concatenate([with_edge - first, without_edge - second])  # (runs, width)
    covariance = apart.T @ apart / max(len(apart) - 2, 1)
    variance = float(np.trace(covariance)) / len(covariance)
    covariance += (RIDGE * variance + 1e-12) * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, first - second)
    return Discriminant(direction, float((first + second) @ direction / 2))


Kind = Literal["release", "flipped edges", "noisy edges", "two worlds", "learned"]

LITTLE = 1e-4
"""Share of the distance of two worlds that may lie in rows of other nodes."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What one run tells about the canaries."""

    scores: NDArray[np.float64] | None
    """(num_canaries,); None where a score must be learned first."""
    mu_squared: NDArray[np.float64] | None
    """(num_canaries,) distance of the two worlds in units of the promised noise, where known."""
    shown: NDArray[np.float64] | None
    """(num_canaries, width), to learn from."""


def observe(
    canaries: Canaries, config: Config, coins: Coins, *, kind: Kind, noise_seed: int
) -> Seen:
    """Run once and look."""
    data = canaries.holdings(coins)
    agreement = agree(config, data, canaries.labels)
    if kind == "two worlds":
        other = canaries.graph(~coins)
        twin = TwinMethod(agreement.method, other=other, noise_seed=noise_seed)
        _run(replace(agreement, method=twin), data, canaries, noise_seed)
        return _of_twin(twin, canaries, coins)
    if kind == "learned":
        shown = ShownMethod(agreement.method, noise_seed=noise_seed)
        _run(replace(agreement, method=shown), data, canaries, noise_seed)
        sums = shown.shown.sums
        assert sums is not None
        return Seen(None, None, canaries.ends(sums))
    door = _run(agreement, data, canaries, noise_seed)
    if door.noisy_graphs:
        return Seen(canaries.shares_in(door.noisy_graphs[0]), None, None)
    there, gone = canaries.all_there, canaries.data.graph  # others' edges are in other rows
    found = [world_ratios(each, there, gone) for each in door.releases]
    return Seen(
        canaries.over_rows(np.sum([each.log_ratios for each in found], axis=0)),
        canaries.over_rows(np.sum([each.mu_squared for each in found], axis=0)),
        None,
    )


def _of_twin(twin: TwinMethod, canaries: Canaries, coins: Coins) -> Seen:
    ratio = canaries.over_rows(twin.twin.log_ratios)
    return Seen(np.where(coins, ratio, -ratio), canaries.over_rows(twin.twin.mu_squared), None)


def _run(
    agreement: Agreement, data: DataHoldings, canaries: Canaries, noise_seed: int
) -> WatchedDoor:
    with tempfile.TemporaryDirectory(prefix="vesper-audit-") as folder:
        with closing(Ledger(Path(folder) / "ledger.sqlite", clock=time.time)) as book:
            noise = NoiseSource.for_simulation(noise_seed)
            door, agreement = open_door(agreement, data.graph, book, noise, run="audit")
            watched = WatchedDoor(door)
            responses = simulated_responses(agreement.config, canaries.labels)
            train(agreement, data, canaries.labels, watched, responses=responses)
    return watched


def kind_of(canaries: Canaries, config: Config) -> Kind:
    """Find out what there is to watch, by one run without any canary."""
    agreement = agree(config, canaries.data, canaries.labels)
    method = _Kept(agreement.method)
    door = _run(replace(agreement, method=method), canaries.data, canaries, 0)
    if door.releases:
        return "release"
    if door.noisy_graphs:
        return "flipped edges" if door.flips_edges_apart else "noisy edges"
    is_exact = (
        method.is_noisy
        and config.privacy.hops == 1
        and config.run.dropout == 0
        and canaries.largest_degree <= config.privacy.max_degree
    )
    return "two worlds" if is_exact else "learned"


def share_nothing(canaries: Canaries, config: Config, kind: Kind) -> bool:
    """Whether what is seen of one canary has nothing to do with another.

    Rows of a release have noise of their own and share no message, unless an edge moves rows of
    others too (clamped degrees); flipped edges share nothing either. In two worlds it depends:
    degrees must not matter (GIN), and the first canary, tried among all others, must move no row
    but those of its ends.
    """
    if kind != "two worlds":
        moves_others = config.privacy.aggregator == "gcn-clamped"
        return kind == "flipped edges" or (kind == "release" and not moves_others)
    others = np.arange(len(canaries)) > 0
    data = canaries.holdings(others)
    agreement = agree(config, data, canaries.labels)
    method = agreement.method
    if not isinstance(method, SampledMethod) or method.aggregator(config) != "gin":
        return False
    twin = TwinMethod(method, other=canaries.all_there, noise_seed=0)
    _run(replace(agreement, method=twin), data, canaries, 0)
    apart = twin.twin.mu_squared
    elsewhere = apart.sum() - canaries.over_rows(apart)[0]
    return bool(elsewhere <= LITTLE * apart.sum())


class _Kept(WatchedMethod):
    """Remembers whether the data side adds noise to rows."""

    is_noisy = False

    def data_side(
        self,
        config: Config,
        sizes: Sizes,
        *,
        noise_plan: Promise,
        features: Features,
        door: Door,
    ) -> Representation:
        """As the method has it."""
        made = super().data_side(config, sizes, noise_plan=noise_plan, features=features, door=door)
        self.is_noisy = row_noise_of(made) is not None
        return made
