import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from vesper.model import sparse_inputs
from vesper.model.encoders import (
    EncoderShape,
    MlpEncoder,
    initialize,
    make_encoder,
    takes_sparse_rows,
)
from vesper.model.encoding_cache import encode_in_parts
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.sparse_inputs import SparseInputs, SparseRows, inputs_of, is_sparse

NUM_NODES, NUM_FEATURES = 400, 60
Matrix = NDArray[np.uint8] | NDArray[np.float32]


def words(seed: int = 0) -> NDArray[np.uint8]:
    """Two words in a hundred; one that nearly all nodes have, and one that no node has."""
    rng = np.random.default_rng(seed)
    features = (rng.random((NUM_NODES, NUM_FEATURES)) < 0.02).astype(np.uint8)
    features[:, 7] = rng.random(NUM_NODES) < 0.97
    features[:, 8] = 0
    features[5] = 0
    features[5, 7] = 1  # a node that equals the median
    return features


def numbers() -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((NUM_NODES, 5)).astype(np.float32)


def both(features: Matrix) -> tuple[Inputs, SparseInputs]:
    scaling = FeatureScaling(features)
    return Inputs(features, scaling), SparseInputs(features, scaling)


def encoder_for(inputs: Inputs) -> MlpEncoder:
    encoder = MlpEncoder(inputs.width, width=9, dropout=0.0, seed=1)
    initialize(encoder, 2)
    return encoder


@pytest.mark.parametrize("features", [words(), words().astype(np.float32) * 3.5, numbers()])
def test_values_and_gradients_are_those_of_the_dense_inputs(features: Matrix) -> None:
    dense, sparse = both(features)
    encoder = encoder_for(dense)
    nodes = np.random.default_rng(3).permutation(NUM_NODES)[:150]
    nodes[3] = nodes[4]  # a node may be requested twice
    gradients = []
    for inputs in (dense, sparse):
        encoder.zero_grad()
        out = encoder(inputs.rows(nodes))  # (150, 9)
        (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
        gradients.append([out.detach(), *(weight.grad for weight in encoder.parameters())])
    for theirs, mine in zip(*gradients, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5)


class Through(nn.Module):
    """A linear layer behind sparse rows, in double precision."""

    def __init__(self, rows: SparseRows, num_inputs: int) -> None:
        super().__init__()
        self.rows = SparseRows(rows.base.double(), rows.deviations)
        self.linear = nn.Linear(num_inputs, 2).double()

    def forward(self) -> Tensor:
        return self.rows.apply_linear(self.linear)


def test_gradients_are_those_of_finite_differences() -> None:
    _, sparse = both(words())
    module = Through(sparse.rows(np.arange(12)), sparse.width)
    weights = {name: weight.detach() for name, weight in module.named_parameters()}

    def through(*given: Tensor) -> Tensor:
        out: Tensor = functional_call(module, dict(zip(weights, given, strict=True)), ())
        return out

    assert torch.autograd.gradcheck(through, [w.requires_grad_() for w in weights.values()])


def test_blocks_and_nodes_that_equal_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, sparse = both(words())
    monkeypatch.setattr(sparse_inputs, "ROWS_PER_BLOCK", 64)
    rows = sparse.rows(np.arange(NUM_NODES))
    assert len(rows) == NUM_NODES
    deviations = np.zeros((NUM_NODES, sparse.width), dtype=np.float32)
    at = rows.deviations
    assert at.weights is not None
    deviations[np.repeat(np.arange(NUM_NODES), np.diff(at.indptr)), at.indices] = at.weights
    whole = dense.rows(np.arange(NUM_NODES)).numpy()
    assert np.allclose(deviations + rows.base.numpy(), whole, atol=1e-6)
    assert np.diff(at.indptr)[5] == 0
    assert len(at.indices) < whole.size / 10  # few are stored
    no_rows = encoder_for(dense)(sparse.rows(np.arange(0)))
    assert no_rows.shape == (0, 9)


def test_inputs_are_sparse_only_if_features_are_and_the_encoder_accepts_it() -> None:
    assert is_sparse(words(), FeatureScaling(words()))
    assert not is_sparse(numbers(), FeatureScaling(numbers()))
    for features, sparse, expected in (
        (words(), True, SparseInputs),
        (words(), False, Inputs),
        (numbers(), True, Inputs),
    ):
        inputs = inputs_of(features, FeatureScaling(features), sparse=sparse)
        assert isinstance(inputs, expected)


@pytest.mark.parametrize(
    ("kind", "dropout", "accepted"),
    [("mlp", 0.0, True), ("mlp", 0.2, False), ("gru", 0.0, False), ("transformer", 0.0, False)],
)
def test_dropout_and_sequences_accept_no_sparse_rows(
    kind: str, dropout: float, accepted: bool
) -> None:
    shape = EncoderShape(num_inputs=8, num_features=4, steps=2, width=4, dropout=dropout, seed=0)
    assert takes_sparse_rows(make_encoder(kind, shape)) is accepted


def test_a_scaling_that_was_loaded_is_used() -> None:
    elsewhere = FeatureScaling(words(seed=9))
    dense, sparse = both(words())
    for inputs in (dense, sparse):
        inputs.scaling.load_fitted(elsewhere.fitted_arrays())
    encoder, nodes = encoder_for(dense), np.arange(NUM_NODES)
    assert torch.allclose(encoder(sparse.rows(nodes)), encoder(dense.rows(nodes)), atol=1e-5)
    in_parts = encode_in_parts(encoder, inputs=sparse, nodes=nodes)
    assert torch.allclose(in_parts, encoder(sparse.rows(nodes)), atol=1e-6)
