"""The GRU decoder: a recurrence over layers."""

import torch

from vesper.model.decoders import GruDecoder


def decoder(seed: int = 0) -> GruDecoder:
    return GruDecoder(embedding_width=5, depth=3, width=4, outputs=3, seed=seed)


def test_one_score_per_class_for_any_depth() -> None:
    for depth in (1, 2, 3):
        assert decoder().decode(torch.ones(6, 5, depth), 0).shape == (6, 3)


def test_is_the_recurrence_of_torch() -> None:
    ours = decoder()
    reference = torch.nn.GRU(5, 4, batch_first=True)
    reference.load_state_dict({f"{k}_l0": v for k, v in ours.cell.state_dict().items()})
    embeddings = torch.linspace(-1, 1, 60).reshape(4, 5, 3)
    _, last = reference(embeddings.transpose(1, 2))
    torch.testing.assert_close(ours.decode(embeddings, 0), ours.layers(last[0]))


def test_order_of_layers_matters() -> None:
    embeddings = torch.linspace(-1, 1, 30).reshape(2, 5, 3)
    scores, flipped = (decoder().decode(e, 0) for e in (embeddings, embeddings.flip(2)))
    assert not torch.allclose(scores, flipped)


def test_weights_come_from_the_seed() -> None:
    embeddings = torch.ones(1, 5, 2)
    assert torch.equal(decoder(1).decode(embeddings, 0), decoder(1).decode(embeddings, 0))
    assert not torch.equal(decoder(1).decode(embeddings, 0), decoder(2).decode(embeddings, 0))
