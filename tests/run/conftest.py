"""What tests of whole runs share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.graph.graph import Graph
from vesper.mechanism.door import Door
from vesper.mechanism.perturbed_graph import Perturbation


class KeptDoor:
    """Gives out what a run has kept, in order: for an undisturbed run with that run's noise."""

    def __init__(self, folder: Path) -> None:
        self._files = iter(sorted(folder.glob("*.npz")))

    def release(self, messages: Any, *, noise_std: float) -> Any:
        return np.load(next(self._files))["sums"]

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        kept = np.load(next(self._files))
        return Graph(kept["indptr"], kept["neighbors"])

    def spent(self) -> str:
        return ""

    def uncertified_graph(self) -> Graph:
        raise AssertionError("only releases may be asked for")


@pytest.fixture
def kept_door() -> Callable[[Path], Door]:
    """Makes a door of the folder in which a run has kept its releases."""
    return KeptDoor
