"""Shared by all tests: hypothesis profiles, and where the public graphs are."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("VESPER_HYPOTHESIS", "fast"))

PUBLIC_GRAPHS = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture
def public_graphs() -> Path:
    """The folder of real graphs beside the project; tests that need it skip where it is missing."""
    if not PUBLIC_GRAPHS.is_dir():
        pytest.skip("needs the public graphs in ../shared/data, which are not on this machine")
    return PUBLIC_GRAPHS
