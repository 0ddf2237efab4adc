"""The page has a row for every size and number of workers, and the cost of a share."""

from importlib.util import find_spec

import pytest
from benchmarks.ray import WORKERS, Work, measure, report
from benchmarks.ray_costs import DEGREES, TABLES, cost_rows
from benchmarks.release_ways import unit_messages
from benchmarks.synthetic import synthetic_graph

from vesper.engine.engine import InProcessEngine


def test_costs_have_a_row_for_every_table_and_degree() -> None:
    rows = list(cost_rows(share=2000))
    assert len([row for row in rows if row.startswith("| an edge")]) == (len(TABLES) + 1) * len(
        DEGREES
    )
    assert any(row.startswith("| a draw of noise") for row in rows)
    assert any(row.startswith("| logits of a node") for row in rows)


def test_turns_are_measured_in_process_and_on_the_engine() -> None:
    work = Work(synthetic_graph(300, 2000), unit_messages(300, 47))
    engine = InProcessEngine(2)
    measured = measure(work, engine, 2)
    assert engine.calls_made
    assert len(measured.ray.wall) == len(measured.here[1].cpu) == 2
    assert measured.row().startswith("| 0 M | 2 |")


@pytest.mark.nightly  # three clusters
def test_the_page_has_all_sizes_workers_and_costs() -> None:
    if find_spec("ray") is None:
        pytest.skip("needs the package ray: pip install 'vesper[ray]'")
    text = report((20_000, 40_000), 1, "python -m benchmarks.ray", share=2000)
    assert text.count("| 0 M |") == 2 * len(WORKERS)
    assert "a draw of noise" in text
