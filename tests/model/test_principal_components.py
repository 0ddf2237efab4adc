import numpy as np
import torch

from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.principal_components import COMPONENTS, ComponentProjection, components_of


def inputs_of(features: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Inputs:
    return Inputs(features, FeatureScaling(features))


def test_few_features_are_used_directly() -> None:
    features = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    inputs = inputs_of(features)
    rows = ComponentProjection(inputs, components_of(inputs))(slice(None))
    standard = inputs.scaling.standardize(torch.from_numpy(features))
    assert torch.allclose(rows, torch.nn.functional.normalize(standard, dim=1))


def test_many_features_are_a_few_directions() -> None:
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=(2000, 2))
    features = hidden @ rng.normal(size=(2, 60)) + 0.1 * rng.normal(size=(2000, 60))
    inputs = inputs_of(features.astype(np.float32))
    components = components_of(inputs)
    assert components.shape == (60, COMPONENTS)
    assert torch.allclose(components.T @ components, torch.eye(COMPONENTS), atol=1e-4)
    projection = ComponentProjection(inputs, components)
    assert projection.width == COMPONENTS
    rows = projection(slice(None))
    assert torch.allclose(projection(slice(5, 7)), rows[5:7], atol=1e-6)
    assert rows.shape == (2000, COMPONENTS)
    assert torch.allclose(rows.norm(dim=1), torch.ones(2000), atol=1e-5)
    assert rows[:, :2].square().sum(dim=1).mean() > 0.9, "both hidden directions come first"


def test_equally_important_features_are_used_directly_if_that_can_be_detected() -> None:
    inputs = inputs_of(np.random.default_rng(2).normal(size=(3000, 40)).astype(np.float32))
    assert torch.equal(components_of(inputs, evidence=1e5, max_columns=100), torch.eye(40))
    assert components_of(inputs, evidence=1.0, max_columns=100).shape == (40, COMPONENTS)
    assert components_of(inputs, evidence=1e5, max_columns=20).shape == (40, 20)
    assert components_of(inputs, evidence=1e5, max_columns=3).shape == (40, COMPONENTS)


def test_directions_without_variance_are_left_out() -> None:
    rng = np.random.default_rng(3)
    features = (rng.normal(size=(3000, 20)) @ rng.normal(size=(20, 50))).astype(np.float32)
    width = components_of(inputs_of(features), evidence=np.inf, max_columns=100).shape[1]
    assert width == 20


def test_very_many_features_are_a_few_directions_whatever_can_be_detected() -> None:
    inputs = inputs_of(np.random.default_rng(4).normal(size=(500, 65)).astype(np.float32))
    assert components_of(inputs, evidence=np.inf, max_columns=100).shape == (65, COMPONENTS)


def test_identical_nodes_have_zero_coordinates() -> None:
    inputs = inputs_of(np.ones((10, 4), dtype=np.float32))
    assert not ComponentProjection(inputs, components_of(inputs))(slice(None)).any()
