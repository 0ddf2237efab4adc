"""The mixture has the specified spread, per row and per class."""

import numpy as np
import pytest

from vesper.datasets.block_model.class_features import ROWS_AT_ONCE, FeatureModel

MODEL = FeatureModel(
    num_features=50,
    num_subclusters=2,
    family_std=0.5,
    class_std=1.0,
    subcluster_std=0.25,
    noise_log_std=0.4,
)
FAMILIES = np.arange(40) % 4


def test_centres_have_the_specified_spread() -> None:
    centres = MODEL.centres(FAMILIES, np.random.default_rng(0))
    assert centres.shape == (40, 2, 50)
    within_class = centres[:, 0] - centres[:, 1]
    assert within_class.std() == pytest.approx(0.25 * np.sqrt(2), rel=0.1)
    within_family = centres[0::4].mean(axis=1) - centres[0::4].mean(axis=(0, 1))
    assert within_family.std() == pytest.approx(np.sqrt(1.0 + 0.25**2 / 2), rel=0.1)


def test_rows_scatter_around_a_centre_of_their_class() -> None:
    labels = np.full(2_000, 3, np.int32)
    (x,) = MODEL.draw(labels, FAMILIES, np.random.default_rng(0))
    centres = MODEL.centres(FAMILIES, np.random.default_rng(0))[3]  # same generator, drawn first
    distances = ((x[:, None, :] - centres) ** 2).mean(axis=2).min(axis=1)  # noise_v squared
    assert np.median(np.sqrt(distances)) == pytest.approx(1.0, rel=0.05)
    assert np.log(np.sqrt(distances)).std() == pytest.approx(0.4, rel=0.15)


def test_blocks_join_to_all_nodes_in_order() -> None:
    num_nodes = ROWS_AT_ONCE + 10
    labels = np.zeros(num_nodes, np.int32)
    reports: list[int] = []
    narrow = FeatureModel(
        num_features=2,
        num_subclusters=1,
        family_std=0.0,
        class_std=0.0,
        subcluster_std=0.0,
        noise_log_std=0.0,
    )
    blocks = list(
        narrow.draw(
            labels,
            np.zeros(1, np.int64),
            np.random.default_rng(0),
            lambda task, done, total, note="": reports.append(done),
        )
    )
    assert [block.shape for block in blocks] == [(ROWS_AT_ONCE, 2), (10, 2)]
    assert reports == [ROWS_AT_ONCE, num_nodes]
    assert blocks[0].dtype == np.float32
    assert blocks[0].std() == pytest.approx(1.0, rel=0.02)
