"""`products-like`: a co-purchase graph with the size and shape of ogbn-products.

The degree histogram is the private one that the paper publishes; its open bin is `>= 50`. Class
shares, mixing and feature noise are set so that models score near the paper's table, see
`docs/decisions/0003-block-model-simulators.md`.
"""

from pathlib import Path

from vesper.datasets.block_model import BlockModel, simulate
from vesper.datasets.class_features import FeatureModel
from vesper.datasets.class_structure import Mixing, skewed_shares
from vesper.datasets.degree_profile import DegreeProfile
from vesper.progress import Progress, silent

NUM_NODES = 2_449_029
NUM_EDGES = 61_859_140
NUM_TRAIN = 196_615
NUM_VAL = 39_323

# fmt: off
_HISTOGRAM = (  # nodes of degree 0, 1, ..., 49 and of 50 or more
    48_432, 103_002, 85_374, 75_648, 73_805, 70_426, 65_550, 62_224, 58_224, 54_547,
    49_750, 46_221, 42_825, 39_800, 37_753, 35_137, 33_398, 31_571, 30_088, 29_142,
    27_542, 26_274, 25_539, 24_787, 23_999, 23_201, 22_587, 21_841, 21_766, 20_732,
    20_329, 20_123, 19_928, 19_491, 19_112, 18_919, 18_356, 18_115, 18_021, 17_949,
    17_749, 17_513, 17_223, 17_464, 16_693, 16_718, 16_494, 16_292, 15_811, 15_538,
    464_446,
)
# fmt: on

PRODUCTS_LIKE = BlockModel(
    class_shares=skewed_shares(47, largest=0.27, ratio=0.9),
    num_families=8,
    degrees=DegreeProfile(
        histogram=_HISTOGRAM,
        mean_degree=2 * NUM_EDGES / NUM_NODES,
        max_degree=17_481,
        tail_log_std=2.0,
    ),
    mixing=Mixing(home_alpha=0.2, home_beta=0.8, clear_degree=40.0, stray_share=0.9, kinship=5.0),
    features=FeatureModel(
        num_features=100,
        num_subclusters=4,
        family_std=0.2,
        class_std=0.123,
        subcluster_std=0.15,
        noise_log_std=0.3,
    ),
    train_share=NUM_TRAIN / NUM_NODES,
    val_share=NUM_VAL / NUM_NODES,
)


def simulate_products_like(
    out: Path, *, num_nodes: int = NUM_NODES, seed: int = 0, progress: Progress = silent
) -> None:
    """Write party folders of `num_nodes` products to `out/data` and `out/label`.

    At the default size: 2,449,029 nodes, 61,859,140 undirected edges, 100 features, 47 classes,
    splits of 196,615 / 39,323 / 2,213,091. At other sizes the shares and the degree profile stay;
    below 5,052 nodes the mean degree shrinks with the size (`DegreeProfile.draw` says how).

    Raises:
        InputError: The size or the seed is out of range, or `out` is taken.
    """
    simulate(PRODUCTS_LIKE, out, num_nodes=num_nodes, seed=seed, progress=progress)
