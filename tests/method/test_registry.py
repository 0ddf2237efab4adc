import pytest
import torch

from vesper.errors import InputError
from vesper.method.blueprint import Method, Shape
from vesper.method.registry import METHODS, find_method

SHAPE = Shape(num_features=5, num_classes=3, width=8, hops=2, degree_share=0.3, dropout=0.1, seed=4)


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_every_method_keeps_the_contract(method: Method) -> None:
    assert method.plan in {"certified", "paper", "edge-free", "none"}
    hops = method.hops(2)
    assert (hops == 0) == (method.plan == "edge-free")
    first, second = method.build(SHAPE), method.build(SHAPE)
    for one, other in zip(first.extractor.parameters(), second.extractor.parameters(), strict=True):
        assert torch.equal(one, other)
    released = torch.zeros(4, 2 * first.extractor.message_width)
    embeddings = first.extractor(torch.zeros(4, 5), released, 0)
    assert embeddings.shape == (4, 3, 3)
    assert first.decoder(embeddings, 0).shape == (4, 3)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of vesper, mlp, got 'gnn'"):
        find_method("gnn")
