import numpy as np
import pytest
import torch
from torch import Tensor, nn

from vesper.model import encoding_cache
from vesper.model.encoding_cache import UNCACHED_FRACTION, EncodingCache, encode_in_parts
from vesper.model.feature_scaling import FeatureScaling, Inputs

NUM_NODES = 50


class Counting(nn.Module):
    """A linear map that counts the rows that it was given."""

    def __init__(self, num_inputs: int) -> None:
        super().__init__()
        self.linear, self.rows = nn.Linear(num_inputs, 3), 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.rows += len(inputs)
        out: Tensor = self.linear(inputs)
        return out


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_cache, "ROWS_PER_BLOCK", 8)


def some_inputs() -> Inputs:
    features = np.random.default_rng(0).standard_normal((NUM_NODES, 4)).astype(np.float32)
    return Inputs(features, FeatureScaling(features))


def cache_of(encoder: Counting, inputs: Inputs, max_bytes: int = 1 << 20) -> EncodingCache:
    return EncodingCache(encoder, weights=encoder, inputs=inputs, max_bytes=max_bytes)


@torch.no_grad()
def test_a_node_is_encoded_once_and_correctly() -> None:
    inputs = some_inputs()
    encoder = Counting(inputs.width)
    cache = cache_of(encoder, inputs)
    rng = np.random.default_rng(1)
    for _ in range(5):
        nodes = rng.permutation(NUM_NODES)[:30]
        assert torch.allclose(cache.rows(nodes), encoder.linear(inputs.rows(nodes)), atol=1e-6)
    assert encoder.rows <= NUM_NODES


@torch.no_grad()
def test_earlier_requests_change_no_bit() -> None:
    inputs = some_inputs()
    encoder = Counting(inputs.width)
    nodes = np.arange(3, 40)
    first, second = cache_of(encoder, inputs), cache_of(encoder, inputs)
    second.rows(np.arange(20, NUM_NODES)[::-1].copy())
    assert torch.equal(first.rows(nodes), second.rows(nodes))


def test_every_change_of_weights_is_noticed() -> None:
    inputs = some_inputs()
    encoder = Counting(inputs.width)
    cache, nodes = cache_of(encoder, inputs), np.arange(NUM_NODES)
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.1, fused=True)

    def is_current() -> bool:
        with torch.no_grad():
            return torch.allclose(cache.rows(nodes), encoder.linear(inputs.rows(nodes)), atol=1e-6)

    assert is_current()
    encoder(inputs.rows(nodes)).sum().backward()
    optimizer.step()
    assert is_current()
    encoder.load_state_dict(before)
    assert is_current()


@torch.no_grad()
def test_few_nodes_and_large_tables_are_not_cached() -> None:
    inputs = some_inputs()
    encoder = Counting(inputs.width)
    few = np.arange(NUM_NODES // UNCACHED_FRACTION)
    cache_of(encoder, inputs).rows(few)
    assert encoder.rows == len(few)
    too_small = cache_of(encoder, inputs, max_bytes=10)
    for _ in range(2):
        assert torch.equal(
            too_small.rows(np.arange(NUM_NODES)), encoder.linear(inputs.rows(np.arange(NUM_NODES)))
        )


def test_in_parts_values_and_gradients_are_those_of_the_whole() -> None:
    inputs = some_inputs()
    nodes = np.random.default_rng(2).permutation(NUM_NODES)[:25]  # four parts of at most 8 rows
    whole, parts = Counting(inputs.width), Counting(inputs.width)
    parts.load_state_dict(whole.state_dict())
    expected, got = whole(inputs.rows(nodes)), encode_in_parts(parts, inputs=inputs, nodes=nodes)
    assert torch.allclose(got, expected, atol=1e-6)
    weights = torch.linspace(-1, 1, expected.numel()).view_as(expected)
    (expected * weights).sum().backward()
    loss: Tensor = (got * weights).sum()
    torch.autograd.backward(loss)
    for mine, theirs in zip(parts.parameters(), whole.parameters(), strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(mine.grad, theirs.grad, atol=1e-5)


def test_no_part_is_a_single_row_unless_one_node_is_requested() -> None:
    inputs, sizes = some_inputs(), []

    def encode(rows: Tensor) -> Tensor:
        sizes.append(len(rows))
        return rows

    assert len(encode_in_parts(encode, inputs=inputs, nodes=np.arange(17))) == 17
    assert sizes == [6, 6, 5]
    assert len(encode_in_parts(encode, inputs=inputs, nodes=np.arange(1))) == 1
