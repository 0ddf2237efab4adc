"""State of a party in a checkpoint, as plain arrays: weights, Adam, generators.

weights/NAME   best/NAME   adam/I/NAME   draws/I          float32 and bytes, no pickle
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vesper.errors import InputError

Arrays = dict[str, NDArray[Any]]
StateDict = dict[str, Tensor]


def with_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Add a prefix to all names."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names have this prefix, without it."""
    start = f"{prefix}/"
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}


def arrays_of(weights: StateDict) -> Arrays:
    """Copy weights to arrays."""
    return {name: value.detach().numpy().copy() for name, value in weights.items()}


def weights_of(arrays: Arrays) -> StateDict:
    """Make weights from arrays; `load_weights` checks names and shapes."""
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def load_weights(module: nn.Module, weights: StateDict) -> None:
    """Load saved weights into a module of the same layers.

    Raises:
        InputError: the weights are those of other layers.
    """
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    if expected != found:
        name = min(each for each in expected | found if expected.get(each) != found.get(each))
        raise InputError(
            f"saved weights: expected '{name}' of shape {expected.get(name, 'none')}, "
            f"found {found.get(name, 'none')}; they were trained by another version of vesper, or "
            f"with other settings: train again, or continue with the version that trained them"
        )
    module.load_state_dict(weights)


def state_arrays(module: nn.Module, optimizer: torch.optim.Adam) -> Arrays:
    """Return the weights of a module, its generators and the state of its optimiser."""
    arrays = with_prefix("weights", arrays_of(module.state_dict()))
    for index, generator in enumerate(_generators(module)):
        arrays[f"draws/{index}"] = generator.get_state().numpy().copy()
    for index, parameter in enumerate(_parameters(optimizer)):
        state = optimizer.state.get(parameter, {})
        arrays |= with_prefix(f"adam/{index}", arrays_of(state))
    return arrays


def load_state_arrays(module: nn.Module, optimizer: torch.optim.Adam, arrays: Arrays) -> None:
    """Restore everything that `state_arrays` returned."""
    load_weights(module, weights_of(without_prefix("weights", arrays)))
    for index, generator in enumerate(_generators(module)):
        generator.set_state(torch.from_numpy(np.array(arrays[f"draws/{index}"])))
    for index, parameter in enumerate(_parameters(optimizer)):
        state = weights_of(without_prefix(f"adam/{index}", arrays))
        if state:
            optimizer.state[parameter] = state


def _generators(module: nn.Module) -> Iterator[torch.Generator]:
    """Generators of masks, and of noise in plans that certify nothing, in a fixed order."""
    for part in module.modules():
        for owner in (part, *vars(part).values()):
            generator = getattr(owner, "generator", None)
            if isinstance(generator, torch.Generator):
                yield generator


def _parameters(optimizer: torch.optim.Adam) -> Iterator[Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
