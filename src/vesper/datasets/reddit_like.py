"""`reddit-like`: a dense graph of posts with the size and shape of Reddit.

The degree histogram is the private one that the paper publishes; its open bin is `>= 50` and holds
four of five nodes. Class shares, mixing and feature noise are set so that models score near the
paper's table, see `docs/decisions/0003-block-model-simulators.md`.
"""

from pathlib import Path

from vesper.datasets.block_model import BlockModel, simulate
from vesper.datasets.class_features import FeatureModel
from vesper.datasets.class_structure import Mixing, skewed_shares
from vesper.datasets.degree_profile import DegreeProfile
from vesper.progress import Progress, silent

NUM_NODES = 232_965
NUM_EDGES = 57_307_946
NUM_TRAIN = 153_431
NUM_VAL = 23_831

# fmt: off
_HISTOGRAM = (  # nodes of degree 0, 1, ..., 49 and of 50 or more
    13, 2_093, 1_827, 1_628, 1_505, 1_392, 1_288, 1_258, 1_208, 1_114,
    1_030, 1_042, 1_045, 1_047, 1_000, 968, 967, 896, 855, 954,
    828, 845, 849, 840, 811, 810, 799, 790, 830, 748,
    785, 768, 764, 707, 694, 703, 692, 723, 705, 649,
    746, 683, 660, 637, 646, 676, 696, 651, 581, 649,
    187_954,
)
# fmt: on

REDDIT_LIKE = BlockModel(
    class_shares=skewed_shares(41, largest=0.12, ratio=0.93),
    num_families=8,
    degrees=DegreeProfile(
        histogram=_HISTOGRAM,
        mean_degree=2 * NUM_EDGES / NUM_NODES,
        max_degree=21_657,
        tail_log_std=1.3,
    ),
    mixing=Mixing(home_alpha=0.8, home_beta=0.3, clear_degree=100.0, stray_share=0.6, kinship=5.0),
    features=FeatureModel(
        num_features=602,
        num_subclusters=4,
        family_std=0.092,
        class_std=0.078,
        subcluster_std=0.092,
        noise_log_std=0.3,
    ),
    train_share=NUM_TRAIN / NUM_NODES,
    val_share=NUM_VAL / NUM_NODES,
)


def simulate_reddit_like(
    out: Path, *, num_nodes: int = NUM_NODES, seed: int = 0, progress: Progress = silent
) -> None:
    """Write party folders of `num_nodes` posts to `out/data` and `out/label`.

    At the default size: 232,965 nodes, 57,307,946 undirected edges, 602 features, 41 classes,
    splits of 153,431 / 23,831 / 55,703. At other sizes the shares and the degree profile stay;
    below 49,199 nodes the mean degree shrinks with the size (`DegreeProfile.draw` says how).

    Raises:
        InputError: The size or the seed is out of range, or `out` is taken.
    """
    simulate(REDDIT_LIKE, out, num_nodes=num_nodes, seed=seed, progress=progress)
