"""An encoder of one's own: any module from (B, num_inputs) to (B, width) that sees no edge."""

from collections.abc import Callable

import torch
from torch import nn

from vesper.errors import InputError
from vesper.method.method import Method
from vesper.method.vesper import VesperMethod
from vesper.model.encoders import EncoderShape

MakeEncoder = Callable[[int, int], nn.Module]
"""(num_inputs, width) -> module."""


def with_encoder(method: Method, make: MakeEncoder) -> Method:
    """The same method with another encoder."""
    if not isinstance(method, VesperMethod):
        raise InputError(
            f"encoder: expected method 'vesper' or 'mlp' for an encoder of one's own, got "
            f"'{method.name}'"
        )

    def encoders(kind: str, shape: EncoderShape) -> nn.Module:
        module = make(shape.num_inputs, shape.width)
        return checked(module, num_inputs=shape.num_inputs, width=shape.width)

    return type(method)(encoders)


def checked(module: object, *, num_inputs: int, width: int) -> nn.Module:
    """Refuse what makes no encodings of the right shape, before anything is spent."""
    if not isinstance(module, nn.Module):
        raise InputError(
            f"encoder: expected a function (num_inputs, width) that gives a torch module, it gave "
            f"{type(module).__name__}"
        )
    was_training = module.training
    with torch.no_grad():
        encodings = module.eval()(torch.zeros(2, num_inputs))
    module.train(was_training)
    if encodings.shape != (2, width):
        raise InputError(
            f"encoder: expected encodings of shape (B, {width}), got {tuple(encodings.shape[1:])} "
            f"a node; take the width from the second argument"
        )
    return module
