"""Models of two published graphs: ogbn-products and Reddit.

Sizes, splits, feature and class counts are the paper's. The degree histograms are the private ones
that it publishes: nodes of degree 0, 1, ..., 49 and of 50 or more. Class shares, mixing and feature
noise are set so that models score near the paper's table, see
`docs/decisions/0003-block-model-simulators.md`.
"""

from vesper.datasets.block_model.class_features import FeatureModel
from vesper.datasets.block_model.class_structure import Mixing, skewed_shares
from vesper.datasets.block_model.degree_profile import DegreeProfile
from vesper.datasets.block_model.simulate_graph import BlockModel

# fmt: off
_PRODUCTS_DEGREES = (
    48_432, 103_002, 85_374, 75_648, 73_805, 70_426, 65_550, 62_224, 58_224, 54_547,
    49_750, 46_221, 42_825, 39_800, 37_753, 35_137, 33_398, 31_571, 30_088, 29_142,
    27_542, 26_274, 25_539, 24_787, 23_999, 23_201, 22_587, 21_841, 21_766, 20_732,
    20_329, 20_123, 19_928, 19_491, 19_112, 18_919, 18_356, 18_115, 18_021, 17_949,
    17_749, 17_513, 17_223, 17_464, 16_693, 16_718, 16_494, 16_292, 15_811, 15_538,
    464_446,
)
_REDDIT_DEGREES = (
    13, 2_093, 1_827, 1_628, 1_505, 1_392, 1_288, 1_258, 1_208, 1_114,
    1_030, 1_042, 1_045, 1_047, 1_000, 968, 967, 896, 855, 954,
    828, 845, 849, 840, 811, 810, 799, 790, 830, 748,
    785, 768, 764, 707, 694, 703, 692, 723, 705, 649,
    746, 683, 660, 637, 646, 676, 696, 651, 581, 649,
    187_954,
)
# fmt: on

PRODUCTS_LIKE = BlockModel(
    num_nodes=2_449_029,
    num_train=196_615,
    num_val=39_323,
    class_shares=skewed_shares(47, largest=0.27, ratio=0.9),
    num_families=8,
    degrees=DegreeProfile(
        histogram=_PRODUCTS_DEGREES,
        mean_degree=2 * 61_859_140 / 2_449_029,
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
)
"""Model of ogbn-products; below 5,052 nodes its mean degree shrinks with the size."""

REDDIT_LIKE = BlockModel(
    num_nodes=232_965,
    num_train=153_431,
    num_val=23_831,
    class_shares=skewed_shares(41, largest=0.12, ratio=0.93),
    num_families=8,
    degrees=DegreeProfile(
        histogram=_REDDIT_DEGREES,
        mean_degree=2 * 57_307_946 / 232_965,
        max_degree=21_657,
        tail_log_std=1.3,
    ),
    mixing=Mixing(home_alpha=0.7, home_beta=0.35, clear_degree=250.0, stray_share=0.6, kinship=5.0),
    features=FeatureModel(
        num_features=602,
        num_subclusters=4,
        family_std=0.092,
        class_std=0.078,
        subcluster_std=0.092,
        noise_log_std=0.3,
    ),
)
"""Model of Reddit; below 49,199 nodes its mean degree shrinks with the size."""
