"""An encoder of one's own: any module from (B, num_inputs) to (B, width) that sees no edge.

It keeps the weights that it comes with, and is asked for once for each network that is averaged.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from vesper.errors import InputError
from vesper.method.base import Method
from vesper.method.certified.method import CertifiedMethod
from vesper.model.custom_encoder import CustomEncoder
from vesper.model.encoders import EncoderShape

MakeEncoder = Callable[[int, int], nn.Module]
"""(num_inputs, width) -> module."""


def with_encoder(method: Method, make: MakeEncoder) -> Method:
    """The same method with another encoder."""
    if not isinstance(method, CertifiedMethod):
        raise InputError(
            f"encoder: expected method 'certified' or 'mlp' for an encoder of one's own, got "
            f"'{method.name}'"
        )
    if isinstance(make, nn.Module):
        raise InputError(
            "encoder: expected a function (num_inputs, width) that gives a torch module, got a "
            "module; how many inputs there are follows from the features, and each of several "
            "networks has one: give encoder=lambda num_inputs, width: ..."
        )

    def encoders(kind: str, shape: EncoderShape) -> nn.Module:
        return CustomEncoder(
            partial(build_encoder, make, num_inputs=shape.num_inputs, width=shape.width),
            seed=shape.seed,
        )

    return type(method)(encoders)


def build_encoder(make: MakeEncoder, *, num_inputs: int, width: int) -> nn.Module:
    """Make it, and refuse what gives no encodings of the right shape, before anything is spent."""
    try:
        module = make(num_inputs, width)
    except Exception as error:  # anything may go wrong in somebody else's function
        raise InputError(
            f"encoder: the function failed when called with num_inputs={num_inputs} and "
            f"width={width}: {_describe(error)}"
        ) from error
    if not isinstance(module, nn.Module):
        raise InputError(
            f"encoder: expected a function (num_inputs, width) that gives a torch module, it gave "
            f"{type(module).__name__}"
        )
    was_training = module.training
    try:
        with torch.no_grad():
            encodings = module.eval()(torch.zeros(2, num_inputs))
    except Exception as error:  # nor do we know what its module does
        raise InputError(
            f"encoder: the module failed on inputs of shape (B, {num_inputs}), float32: "
            f"{_describe(error)}"
        ) from error
    module.train(was_training)
    if not isinstance(encodings, Tensor):
        raise InputError(
            f"encoder: expected a module that gives one tensor of shape (B, {width}), it gave "
            f"{type(encodings).__name__}"
        )
    if encodings.shape != (2, width) or encodings.dtype != torch.float32:
        raise InputError(
            f"encoder: expected encodings of shape (B, {width}), float32, got "
            f"{tuple(encodings.shape[1:])} a node, {str(encodings.dtype).removeprefix('torch.')}; "
            f"take the width from the second argument"
        )
    return module


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
