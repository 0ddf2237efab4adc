"""A statement says nothing about other charges: the same bytes whatever else was counted."""

import json
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.cli.degrees_command import degrees
from vesper.errors import InputError
from vesper.export.writer import export_features
from vesper.privacy.ledger.ledger_file import default_ledger, open_to_read
from vesper.session.config import load_config

NODES = 80
RING = [(k, (k + 1) % NODES) for k in range(NODES)]
RANDOM = ("sha256", "run", "time", "public_key", "signature")
"""What differs between any two exports: noise, a random name, the time, the ledger's key."""


def write_graph(folder: Path, edges: list[tuple[int, int]]) -> Path:
    """Nodes with a feature each, and these edges."""
    folder.mkdir()
    nodes = {"id": range(NODES), "age": np.sin(np.arange(NODES))}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    src, dst = zip(*edges, strict=True)
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    return folder


def masked_statement(path: Path) -> str:
    """Text of a statement without what is random in every export."""
    text = path.read_text()
    for name in RANDOM:
        text, count = re.subn(rf'"{name}": "[^"]+"', f'"{name}": ""', text)
        assert count == 1, name
    return text


def export(data: Path, out: Path, ledger: Path) -> str:
    config = load_config(None, {"epsilon": 2.0, "delta": 1e-6})
    warnings: list[str] = []
    made = export_features(
        data, config, out, graph_name="november", ledger=ledger, warn=warnings.append
    )
    assert not any("november" in line for line in made.statement.read_text().splitlines())
    return masked_statement(made.statement)


EARLIER = {
    "nothing": None,
    "equal edges": RING,
    "one edge more": [*RING, (0, NODES // 2)],
    "one edge less": RING[1:],
    "other edges": [(k, (k + 7) % NODES) for k in range(NODES)],
}


@pytest.mark.parametrize("name", ["october", "november"])
def test_statements_are_equal_whatever_was_counted_before(tmp_path: Path, name: str) -> None:
    """Under another name, counts change nothing; under the same one, only that there were any."""
    statements: dict[str, str] = {}
    data = write_graph(tmp_path / "data", RING)
    for number, (what, edges) in enumerate(EARLIER.items()):
        ledger = tmp_path / f"{number}.sqlite"
        if edges is not None:
            counted = write_graph(tmp_path / f"counted-{number}", edges)
            degrees(counted, epsilon=0.5, graph=name, ledger=ledger)
        (tmp_path / str(number)).mkdir()
        statements[what] = export(data, tmp_path / str(number) / "r.parquet", ledger)
    if name == "november":
        assert statements.pop("nothing") != statements["equal edges"]
    assert len(set(statements.values())) == 1


def test_one_edge_more_in_the_exported_graph_changes_no_byte(tmp_path: Path) -> None:
    """What was counted under another name equals one of the two graphs, and not the other."""
    statements = []
    counted = write_graph(tmp_path / "counted", RING)
    for number, edges in enumerate((RING, [*RING, (0, NODES // 2)])):
        ledger = tmp_path / f"{number}.sqlite"
        degrees(counted, epsilon=0.5, graph="october", ledger=ledger)
        data = write_graph(tmp_path / f"data-{number}", edges)
        (tmp_path / str(number)).mkdir()
        statements.append(export(data, tmp_path / str(number) / "r.parquet", ledger))
    assert statements[0] == statements[1]


def test_a_statement_has_nothing_of_the_ledger_but_this_run(tmp_path: Path) -> None:
    data, ledger = write_graph(tmp_path / "data", RING), tmp_path / "ledger.sqlite"
    degrees(data, epsilon=0.5, graph="november", ledger=ledger)
    export(data, tmp_path / "r.parquet", ledger)
    facts = json.loads((tmp_path / "r.statement.json").read_text())
    assert not {"ledger_head", "ledger_entry", "ledger", "graph", "left_epsilon"} & set(facts)
    with closing(open_to_read(ledger)) as reader:
        entries = list(reader.entries())
        (run,) = {entry.run for entry in entries if entry.run not in ("", "degrees")}
        own = [entry for entry in entries if entry.run == run and entry.cost > 0]
        head = reader.head()
    assert (facts["format"], facts["run"]) == (2, run)
    assert len(facts["releases"]) == len(own) == 1
    text = (tmp_path / "r.statement.json").read_text()
    assert head[1].hex()[:16] not in text
    assert facts["spent_epsilon"] == pytest.approx(1.5)


def test_without_a_name_nothing_is_created(tmp_path: Path) -> None:
    data = write_graph(tmp_path / "data", RING)
    before = sorted(tmp_path.rglob("*"))
    for name, message in ((None, "expected a name for the graph"), ("a b", "letters, digits")):
        with pytest.raises(InputError, match=message):
            export_features(
                data, load_config(None, {}), tmp_path / "new" / "r.parquet", graph_name=name
            )
    assert sorted(tmp_path.rglob("*")) == before
    assert not default_ledger().exists()


def test_an_interrupted_export_returns_what_it_has_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vesper.export.writer._columns", stop)
    data, ledger = write_graph(tmp_path / "data", RING), tmp_path / "ledger.sqlite"
    with pytest.raises(KeyboardInterrupt):
        export(data, tmp_path / "r.parquet", ledger)
    with closing(open_to_read(ledger)) as reader:
        kinds = [entry.facts["kind"] for entry in reader.entries()]
    assert kinds[-2:] == ["reserved", "returned"]
    monkeypatch.undo()
    export(data, tmp_path / "r.parquet", ledger)
