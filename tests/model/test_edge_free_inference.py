from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.engine.engine import InProcessEngine
from vesper.model import edge_free_inference
from vesper.model.edge_free_inference import edge_free_logits_of_all
from vesper.model.encoders import EncoderShape, make_encoder
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.pre import PrivateRepresentationExtractor

NUM_NODES, NUM_FEATURES, BLOCK = 217, 6, 16


@pytest.fixture
def features(tmp_path: Path) -> NDArray[np.float32]:
    drawn = np.random.default_rng(0).standard_normal((NUM_NODES, NUM_FEATURES), dtype=np.float32)
    np.save(tmp_path / "features.npy", drawn)
    mapped: NDArray[np.float32] = np.load(tmp_path / "features.npy", mmap_mode="r")
    return mapped


def extractor_for(width: int) -> PrivateRepresentationExtractor:
    shape = EncoderShape(
        num_inputs=width, num_features=NUM_FEATURES, steps=1, width=8, dropout=0.5, seed=1
    )
    return PrivateRepresentationExtractor(
        [make_encoder("mlp", shape) for _ in range(2)],
        encoding_width=8,
        num_classes=3,
        message_width=4,
        hops=1,
        dropout=0.5,
        seed=2,
    )


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("num_workers", [1, 3, 50])
def test_workers_give_what_one_process_gives(
    features: NDArray[np.float32], num_workers: int, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_free_inference, "ROWS_PER_BLOCK", BLOCK)
    inputs = Inputs(features, FeatureScaling(features))
    extractor = extractor_for(inputs.width).eval()
    engine = InProcessEngine(num_workers, local=local)
    logits = edge_free_logits_of_all(engine, extractor, inputs)
    with torch.no_grad():
        blocks = np.array_split(np.arange(NUM_NODES), range(BLOCK, NUM_NODES, BLOCK))
        logits_by_member = torch.cat(
            [extractor.edge_free_logits(inputs.rows(block)) for block in blocks]
        )
        expected = logits_by_member.mean(dim=2)
    assert torch.equal(logits, expected)
    pieces = -(-NUM_NODES // BLOCK)
    assert len({call.worker for call in engine.calls_made}) == min(num_workers, pieces)
