"""What is fitted once, on the graph of training, and kept to on every other."""

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


class Fitted:
    """Named values: the model is one function, whatever graph it is asked about."""

    def __init__(self) -> None:
        self._values: dict[str, Tensor] = {}

    def once(self, name: str, fit: Callable[[], Tensor]) -> Tensor:
        """Fit on the graph of training; later, and on every other graph, the same."""
        if name not in self._values:
            self._values[name] = fit()
        return self._values[name]

    def find(self, name: str) -> Tensor | None:
        """Give what was fitted under this name, if it was."""
        return self._values.get(name)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything."""
        return {name: value.numpy() for name, value in self._values.items()}

    def keep_to(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take it over."""
        self._values = {name: torch.from_numpy(array) for name, array in arrays.items()}
