"""Results, and measures that a worker can import."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vesper.session.config import load_config
from vesper.study.cell import Cell, CellResult
from vesper.study.study_results import line_of
from vesper.study.worker import Job

MEASURES = """
import os
import resource
import threading

from vesper.study.measure import Measurement


def quick(config, folder, out):
    out.mkdir()
    threads = float(os.environ["OMP_NUM_THREADS"])
    return Measurement(plan="certified", metric="threads", test=threads)


def allocating(config, folder, out):
    bytearray(1 << 26)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        bytearray(1 << 26)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return Measurement(plan="none", metric="faults", test=float(faults))


def wrong(config, folder, out):
    raise ValueError("no luck\\nat all")


def endless(config, folder, out):
    threading.Event().wait()


def deadly(config, folder, out):
    os._exit(9)
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Job]:
    """Return a function that makes a job from the name of a measure and a seed."""
    folder = tmp_path / "importable"
    folder.mkdir()
    (folder / "study_measures.py").write_text(MEASURES)
    monkeypatch.syspath_prepend(str(folder))
    import importlib

    module = importlib.import_module("study_measures")

    def make(measure: str, seed: int) -> Job:
        return Job(
            cell=Cell("tiny", "certified", 4.0, seed),
            config=load_config(None, {"seed": seed}),
            folder=tmp_path,
            measure=measure,
            measure_function=getattr(module, measure),
        )

    return make


@pytest.fixture
def line() -> Callable[..., CellResult]:
    """Return a function that makes a result of a cell."""

    def make(cell: Cell, **more: Any) -> CellResult:
        facts: dict[str, Any] = {"settings": "s", "version": "1", "code": "c", "test": 50.0}
        identity = {name: getattr(cell, name) for name in cell.__dataclass_fields__}
        facts |= identity | more
        return line_of(facts)

    return make
