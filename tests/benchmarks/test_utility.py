"""The benchmark measures through `simulate`, and runs only what is missing."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.utility import main
from benchmarks.utility_cells import config_of

from vesper.simulation.simulate import simulate
from vesper.study.cell import Cell, settings_digest
from vesper.study.study_results import read_lines

SMALL = {"epochs": 1, "width": 8}
CELL = Cell("tiny", "certified", 2.0, 3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Folder of public data sets: one, in the neutral layout."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    nodes = {
        "id": range(60),
        "label": pa.array([k % 2 for k in range(60)], type=pa.int32()),
        "split": [("train", "val", "test")[k // 2 % 3] for k in range(60)],
        "f0": generator.normal(size=60).astype(np.float32),
    }
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    edges = {"src": range(60), "dst": [(k + 2) % 60 for k in range(60)]}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    return folder.parent


def bench(data: Path, *more: str) -> Path:
    results = data.parent / "u.jsonl"
    work = str(data.parent / "work")
    main(["--data", str(data), "--results", str(results), "--work", work, *more])
    return results


def test_digests_differ_where_settings_differ() -> None:
    digest = settings_digest(config_of(CELL, SMALL))
    assert digest == settings_digest(config_of(CELL, SMALL))
    assert digest != settings_digest(config_of(CELL, {"epochs": 2}))
    assert digest != settings_digest(config_of(Cell("tiny", "certified", 2.0, 4), SMALL))


@pytest.mark.parametrize(
    ("cell", "neighbors"),
    [
        (Cell("ieee_cis", "edgerand", 8.0, 0), 10),
        (Cell("ieee_cis", "edgerand", 16.0, 0), 50),
        (Cell("ieee_cis", "lapgraph", 8.0, 0), 50),
        (Cell("fb100_multi8", "edgerand", 8.0, 0), 50),
    ],
)
def test_fewer_neighbours_are_sampled_where_nearly_all_are_noise(
    cell: Cell, neighbors: int
) -> None:
    assert config_of(cell, {}).privacy.max_degree == neighbors
    assert config_of(cell, {"max_degree": 7}).privacy.max_degree == 7


def test_the_command_runs_what_is_missing_and_writes_the_page(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--methods", "mlp,certified", "--epsilons", "2", "--seeds", "3"]
    arguments += ["--set", "epochs=1", "--set", "width=8"]
    results = bench(data, *arguments)
    lines = {line.method: line for line in read_lines(results)}
    assert set(lines) == {"mlp", "certified"}
    capsys.readouterr()
    bench(data, *arguments)
    assert "2 cells requested, 2 done, 0 to do" in capsys.readouterr().err
    work = data.parent / "work"
    assert [path.name for path in work.iterdir()] == ["tiny"]
    direct = simulate(work / "tiny", config_of(CELL, SMALL), data.parent / "run")
    assert lines["certified"].test == direct.test
    assert lines["certified"].plan == "certified"
    bench(data, "--table")
    assert "| certified |" in results.with_suffix(".md").read_text()
    assert results.with_suffix(".svg").read_text().startswith("<svg")
    assert results.with_name("u-contenders.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "wrong", [("--methods", "magic"), ("--datasets", "nowhere"), ("--only", "tiny/magic/1/0")]
)
def test_unknown_names_are_refused(data: Path, wrong: tuple[str, str]) -> None:
    with pytest.raises(SystemExit, match="expected some of"):
        bench(data, *wrong)
