"""Counting threads starts no pool, and torch keeps its number of threads."""

import os
import subprocess
import sys

import numba
import pytest

from vesper.parallel.pool import threads_allowed

SCRIPT = """
import torch
from vesper.graph.graph import Graph
from vesper.parallel.pool import threads_allowed
from vesper.mechanism.door import OpenDoor
import numpy as np
assert torch.get_num_threads() == 1
graph = Graph.from_edges(4, [(0, 1), (1, 2)])
OpenDoor(graph).release(np.zeros((4, 2), dtype=np.float32), noise_std=0.0)
print(threads_allowed(), torch.get_num_threads())
"""


def test_torch_keeps_its_number_of_threads() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1"]


def test_a_lower_number_set_in_numba_is_respected() -> None:
    most = numba.get_num_threads()
    if most < 2:
        pytest.skip("needs two cores")
    numba.set_num_threads(1)
    try:
        assert threads_allowed() == 1
    finally:
        numba.set_num_threads(most)
    assert threads_allowed() == most
