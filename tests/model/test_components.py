import numpy as np
import torch

from vesper.model.components import COMPONENTS, components_of, rows_along
from vesper.model.scaling import Inputs, Scaling


def inputs_of(features: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Inputs:
    return Inputs(features, Scaling(features))


def test_few_features_are_taken_as_they_are() -> None:
    features = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    inputs = inputs_of(features)
    rows = rows_along(inputs, components_of(inputs))
    standard = inputs.scaling.standard(torch.from_numpy(features))
    assert torch.allclose(rows, torch.nn.functional.normalize(standard, dim=1))


def test_many_features_are_a_few_directions() -> None:
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(2000, 2))
    features = hidden @ rng.normal(size=(2, 60)) + 0.1 * rng.normal(size=(2000, 60))
    inputs = inputs_of(features.astype(np.float32))
    components = components_of(inputs)
    assert components.shape == (60, COMPONENTS)
    assert torch.allclose(components.T @ components, torch.eye(COMPONENTS), atol=1e-4)
    rows = rows_along(inputs, components)
    assert rows.shape == (2000, COMPONENTS)
    assert torch.allclose(rows.norm(dim=1), torch.ones(2000), atol=1e-5)
    assert rows[:, :2].square().sum(dim=1).mean() > 0.9, "both hidden directions come first"


def test_nodes_that_are_all_alike_lie_nowhere() -> None:
    inputs = inputs_of(np.ones((10, 4), dtype=np.float32))
    assert not rows_along(inputs, components_of(inputs)).any()
