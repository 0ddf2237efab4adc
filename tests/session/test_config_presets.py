"""Presets are the paper's configurations: batches of 32, delta one over the number of edges."""

import pytest

from vesper.method.base import PublicSizes
from vesper.method.registry import find_method
from vesper.session.config import load_config


@pytest.mark.parametrize(
    ("name", "edges", "width", "epochs"),
    [
        ("products", 123_718_280, 128, 5),
        ("reddit", 114_615_892, 512, 5),
        ("finance", 2_447_370, 256, 2),
    ],
)
def test_delta_is_one_over_the_number_of_edges(
    name: str, edges: int, width: int, epochs: int
) -> None:
    config = load_config(None, {"method": "gap"}, preset=name)
    assert config.privacy.delta == 1 / edges
    assert (config.run.batch_size, config.run.epochs) == (32, epochs)
    assert (config.run.width, config.run.message_width) == (width, width)


@pytest.mark.parametrize(
    ("name", "num_nodes", "num_train", "expected"),
    [("reddit", 232_965, 153_431, 8.12), ("finance", 1_132_511, 848_963, 1.446)],
)
def test_noise_of_the_presets_at_epsilon_four(
    name: str, num_nodes: int, num_train: int, expected: float
) -> None:
    """With powers of ten as delta it was 7.57 and 1.553."""
    sizes = PublicSizes(num_nodes=num_nodes, num_train=num_train, num_features=10, num_classes=2)
    config = load_config(None, {"method": "paper-gin", "epsilon": 4.0}, preset=name)
    plan = find_method("paper-gin").noise_plan(config, sizes)
    assert plan.noise_stds[0] == pytest.approx(expected, abs=0.005)


def test_gap_is_charged_for_the_epochs_of_the_run() -> None:
    sizes = PublicSizes(num_nodes=1_132_511, num_train=848_963, num_features=10, num_classes=2)
    given = {"method": "gap", "accounting": "theorem-1", "hops": 2}

    def noise_std(epochs: int) -> float:
        config = load_config(None, {**given, "epochs": epochs}, preset="finance")
        return find_method("gap").noise_plan(config, sizes).noise_stds[0]

    assert noise_std(2) == pytest.approx(1.446, abs=0.005)  # that of the paper's GIN
    assert noise_std(10) > 1.3 * noise_std(2)
