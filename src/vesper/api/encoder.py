"""Custom encoders: any torch module from (B, num_inputs) to (B, width); it never sees an edge.

The module keeps its initial weights. The function that makes it is called once for each ensemble
member.
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
"""Function (num_inputs, width) -> module."""


def with_encoder(method: Method, make: MakeEncoder) -> Method:
    """Return the same method with a custom encoder."""
    if not isinstance(method, CertifiedMethod):
        raise InputError(
            f"encoder: expected method 'certified' or 'mlp' for a custom encoder, got "
            f"'{method.name}'"
        )
    if isinstance(make, nn.Module):
        raise InputError(
            "encoder: expected a function (num_inputs, width) that returns a torch module, got a "
            "module; the number of inputs follows from the features, and each ensemble member has "
            "an encoder of its own: pass encoder=lambda num_inputs, width: ..."
        )

    def encoders(kind: str, shape: EncoderShape) -> nn.Module:
        return CustomEncoder(
            partial(build_encoder, make, num_inputs=shape.num_inputs, width=shape.width),
            seed=shape.seed,
        )

    return type(method)(encoders)


def build_encoder(make: MakeEncoder, *, num_inputs: int, width: int) -> nn.Module:
    """Make the encoder; refuse one with outputs of a wrong shape, before any budget is spent."""
    try:
        module = make(num_inputs, width)
    except Exception as error:  # the user's function may raise anything
        raise InputError(
            f"encoder: the function failed when called with num_inputs={num_inputs} and "
            f"width={width}: {_describe(error)}"
        ) from error
    if not isinstance(module, nn.Module):
        raise InputError(
            f"encoder: expected a function (num_inputs, width) that returns a torch module, it "
            f"returned {type(module).__name__}"
        )
    was_training = module.training
    try:
        with torch.no_grad():
            encodings = module.eval()(torch.zeros(2, num_inputs))
    except Exception as error:  # and so may the module
        raise InputError(
            f"encoder: the module failed on inputs of shape (B, {num_inputs}), float32: "
            f"{_describe(error)}"
        ) from error
    module.train(was_training)
    if not isinstance(encodings, Tensor):
        raise InputError(
            f"encoder: expected a module that returns one tensor of shape (B, {width}), it "
            f"returned {type(encodings).__name__}"
        )
    if encodings.shape != (2, width) or encodings.dtype != torch.float32:
        raise InputError(
            f"encoder: expected encodings of shape (B, {width}), float32, got "
            f"{tuple(encodings.shape[1:])} per node, {str(encodings.dtype).removeprefix('torch.')};"
            f" use the width that is passed as the second argument"
        )
    return module


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
