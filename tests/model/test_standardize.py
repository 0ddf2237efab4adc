"""Standardised embeddings: by the batch while training, by running means afterwards."""

import torch

from vesper.model.decoders import ConcatDecoder
from vesper.model.standardize import StandardizingDecoder


def decoder() -> StandardizingDecoder:
    inner = ConcatDecoder(embedding_width=2, depth=3, width=4, outputs=2, seed=0)
    return StandardizingDecoder(inner, embedding_width=2, depth=3)


def batch(seed: int, rows: int = 50) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 7 + 0.01 * torch.randn(rows, 2, 3, generator=generator)


def test_shift_and_size_of_embeddings_do_not_matter_while_training() -> None:
    embeddings = batch(0)
    scores, moved = (decoder().decode(e, 0) for e in (embeddings, 100 * embeddings - 3))
    torch.testing.assert_close(scores, moved, rtol=0.2, atol=0.2)  # up to the floor
    assert not torch.allclose(scores[0], scores[1])


def test_evaluation_uses_running_means_of_training() -> None:
    one = decoder()
    one.decode(batch(0), 0)
    one.eval()
    again = one.decode(batch(1), 0)
    assert torch.equal(again, one.decode(batch(1), 0))
    torch.testing.assert_close(one.mean, batch(0).mean(dim=0))
    torch.testing.assert_close(again[:1], one.decode(batch(1)[:1], 0))


def test_running_means_follow() -> None:
    one = decoder()
    for _ in range(40):
        one.decode(batch(3) + 1, 0)
    torch.testing.assert_close(one.mean, (batch(3) + 1).mean(dim=0))


def test_a_batch_of_one_root_is_decoded() -> None:
    one = decoder()
    one.decode(batch(0), 0)
    mean_before = one.mean.clone()
    assert torch.isfinite(one.decode(batch(1, rows=1), 0)).all()
    assert torch.equal(one.mean, mean_before)


def test_the_state_is_complete() -> None:
    one, other = decoder(), decoder()
    one.decode(batch(0), 0)
    other.load_state_dict(one.state_dict())
    assert {key.split(".")[0] for key in one.state_dict()} == {
        "inner",
        "mean",
        "variance",
        "total_weight",
    }
    one.eval()
    other.eval()
    assert torch.equal(one.decode(batch(1), 0), other.decode(batch(1), 0))


def test_a_few_roots_weigh_little() -> None:
    one = decoder()
    one.decode(batch(0, rows=1000), 0)
    mean_before = one.mean.clone()
    one.decode(batch(1, rows=4) + 100, 0)
    assert (one.mean - mean_before).abs().max() < 1
