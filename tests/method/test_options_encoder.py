"""Any module that sees no edge may be the encoder."""

import numpy as np
import torch
from torch import Tensor, nn

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.base import PublicSizes
from vesper.method.certified.method import CertifiedMethod
from vesper.method.settings import Config, PrivacySettings, RunSettings
from vesper.model.encoders import EncoderShape

SIZES = PublicSizes(num_nodes=12, num_train=6, num_features=3, num_classes=2)


class Waves(nn.Module):
    def __init__(self, num_inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_inputs, width)

    def forward(self, inputs: Tensor) -> Tensor:
        waves: Tensor = self.linear(inputs).sin()
        return waves


def test_a_custom_encoder_is_used() -> None:
    shapes: list[EncoderShape] = []

    def waves(kind: str, shape: EncoderShape) -> nn.Module:
        shapes.append(shape)
        return Waves(shape.num_inputs, shape.width)

    config = Config(
        privacy=PrivacySettings(epsilon=float("inf"), hops=1), run=RunSettings(width=8, members=3)
    )
    graph = Graph.from_edges(12, [(k, (k + 1) % 12) for k in range(12)])
    features = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    method = CertifiedMethod(waves)
    side = method.make_representation(
        config,
        SIZES,
        noise_plan=method.noise_plan(config, SIZES),
        features=features,
        door=OpenDoor(graph),
    )
    assert [(shape.num_features, shape.width) for shape in shapes] == [(3, 8)] * 3  # one per member
    assert len({shape.seed for shape in shapes}) == 3
    side.begin_stage(0)
    torch.autograd.backward([side.embed(np.arange(4), training=True).sum()])
    owned = [part for part in side.module.modules() if isinstance(part, Waves)]
    assert len(owned) == 3
    assert all(each.linear.weight.grad is not None for each in owned)
