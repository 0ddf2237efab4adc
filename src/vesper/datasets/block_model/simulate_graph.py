"""A simulated graph with classes, of any size: degrees, edges, features, labels and splits.

A degree-corrected block model in which nodes differ in how well they fit their class:

1. `class_structure`: a class for every node, and how its degree splits over the pools of its own
   class, of another class, and of all nodes.
2. `degree_profile`: degrees from a published histogram.
3. `stub_matching`: random pairing of the stubs of each pool into a simple graph with exactly these
   degrees.
4. `class_features`: a Gaussian mixture that reveals the class of some nodes.

Ids 0..num_nodes - 1 are independent of class, degree and split.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.datasets.block_model.class_features import FeatureModel
from vesper.datasets.block_model.class_structure import (
    Mixing,
    class_pools,
    draw_labels,
    draw_strays,
    split_stubs,
)
from vesper.datasets.block_model.degree_profile import DegreeProfile
from vesper.datasets.block_model.stub_matching import match
from vesper.datasets.folders import new_folder
from vesper.datasets.party_tables import edges_of_keys, write_edges, write_labels, write_vectors
from vesper.errors import InputError
from vesper.progress import Progress, no_progress

FEWEST_NODES = 100
MOST_NODES = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class BlockModel:
    """Everything about a simulated data set except its seed."""

    num_nodes: int
    """Published size, at which the counts below are exact; other sizes keep the shares."""
    num_train: int
    """Nodes for training."""
    num_val: int
    """Nodes for validation; the rest, in neither split, is for testing."""
    class_shares: tuple[float, ...]
    num_families: int
    """Class c lies in family `c % num_families`."""
    degrees: DegreeProfile
    mixing: Mixing
    features: FeatureModel


def simulate(
    model: BlockModel,
    out: Path,
    *,
    num_nodes: int | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> None:
    """Write `out/data` and `out/label`; the same arguments always give the same tables.

    Args:
        model: What to simulate.
        out: A new or empty folder.
        num_nodes: Number of nodes; by default the published one. Small graphs are sparser, see
            `DegreeProfile.draw`.
        seed: Seed of all draws.
        progress: receives progress reports.

    Raises:
        InputError: The size or the seed is out of range, or `out` has content.
    """
    num_nodes = model.num_nodes if num_nodes is None else num_nodes
    if not FEWEST_NODES <= num_nodes <= MOST_NODES:
        raise InputError(
            f"nodes: expected {FEWEST_NODES} to {MOST_NODES}, got {num_nodes}; choose another size"
        )
    if seed < 0:
        raise InputError(f"seed: expected 0 or more, got {seed}; choose another seed")
    for_labels, for_edges, for_features, for_splits = np.random.default_rng(seed).spawn(4)
    families = np.arange(len(model.class_shares)) % model.num_families  # (classes,)
    with new_folder(out) as folder:
        labels = draw_labels(model.class_shares, num_nodes, for_labels)  # (num_nodes,)
        keys = _draw_edges(model, labels, families, for_edges, progress)
        write_edges(folder, edges_of_keys(keys, num_nodes))
        del keys
        x = model.features.draw(labels, families, for_features, progress)
        write_vectors(folder, x, width=model.features.num_features)
        splits = _draw_splits(model, num_nodes, for_splits)
        write_labels(folder, np.arange(num_nodes), labels, splits)


def _draw_edges(
    model: BlockModel,
    labels: NDArray[np.int32],
    families: NDArray[np.int64],
    rng: np.random.Generator,
    progress: Progress,
) -> NDArray[np.int64]:
    num_nodes = len(labels)
    degrees = model.degrees.draw(num_nodes, rng)
    home, stray, anywhere = split_stubs(degrees, model.mixing, rng)
    strays = draw_strays(labels, families, model.mixing.kinship, rng)
    return match(
        class_pools(labels, strays, home, stray, num_classes=len(families)),
        np.repeat(np.arange(num_nodes, dtype=np.int32), anywhere),
        num_nodes=num_nodes,
        rng=rng,
        progress=progress,
    )


def _draw_splits(model: BlockModel, num_nodes: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw 0, 1, 2 for train, val, test: exact counts in random order."""
    num_train = round(model.num_train / model.num_nodes * num_nodes)
    num_val = round(model.num_val / model.num_nodes * num_nodes)
    splits = np.full(num_nodes, 2, np.int8)
    splits[:num_train] = 0
    splits[num_train : num_train + num_val] = 1
    rng.shuffle(splits)
    return splits
