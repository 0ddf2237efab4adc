"""Which graph is served: that of training, unchanged, or a snapshot with one name."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fixtures.finished_run import GRAPH, LATER_GRAPH

from vesper.errors import BudgetError, InputError, VesperError
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.serving.embedding_server import open_embedding_server

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train


def name_of(finished: "FinishedRun", snapshot: Path | None = None, graph: str = LATER_GRAPH) -> str:
    noise = NoiseSource.for_simulation(5)
    with open_embedding_server(
        finished.data, snapshot=snapshot, graph=graph, noise=noise
    ) as server:
        return server.served_graph.name


def remove_last_edge(folder: Path) -> None:
    edges = pq.read_table(folder / "edges.parquet")
    pq.write_table(edges.slice(0, len(edges) - 1), folder / "edges.parquet")


def change_features(folder: Path) -> None:
    nodes = pq.read_table(folder / "nodes.parquet")
    rent = pa.array([float(k) for k in range(len(nodes))])
    pq.write_table(nodes.set_column(2, "rent", rent), folder / "nodes.parquet")


def test_the_graph_of_training_has_the_name_of_the_session(finished: "FinishedRun") -> None:
    assert name_of(finished) == (finished.data.party.state / "session").read_bytes().hex()


def test_edges_of_today_are_not_compared_with_those_of_training(finished: "FinishedRun") -> None:
    """Answers come from what was released; a refusal would reveal that an edge has changed."""
    before, answer = finished.ledger.read_bytes(), finished.query(("u01",))
    remove_last_edge(finished.data.party.folder)
    assert name_of(finished) == (finished.data.party.state / "session").read_bytes().hex()
    assert np.array_equal(finished.query(("u01",)).values, answer.values)
    assert finished.ledger.read_bytes() == before


def test_other_features_are_not_those_of_training(train: "Train") -> None:
    finished = train(method="mlp")
    change_features(finished.data.party.folder)
    with pytest.raises(InputError, match="--snapshot"):
        name_of(finished)


def test_a_lost_release_is_not_drawn_again(finished: "FinishedRun") -> None:
    shutil.rmtree(finished.data.party.state / "releases")
    with open_embedding_server(finished.data) as server:
        from vesper.protocol.messages import EmbeddingQuery

        with pytest.raises(VesperError, match="missing or changed"):
            server.reply(EmbeddingQuery(number=1, ids=("u01",)), stage=1)


def test_a_changed_ledger_is_refused(finished: "FinishedRun") -> None:
    import sqlite3

    database = sqlite3.connect(finished.ledger)
    database.execute("DROP TRIGGER entries_stay")
    database.execute("UPDATE entries SET run = 'other' WHERE cost > 0")
    database.commit()
    database.close()
    with pytest.raises(VesperError, match="was changed"):
        name_of(finished)


def test_the_graph_of_training_as_a_snapshot_is_another_version_of_its_name(
    finished: "FinishedRun",
) -> None:
    """Equal edges are not noticed: the declared name, whose budget is spent, decides."""
    copied = finished.root / "copied"
    shutil.copytree(finished.data.party.folder, copied)
    for folder in (copied, finished.snapshot()):
        with pytest.raises(BudgetError, match=f"graph '{GRAPH}' does not allow this"):
            name_of(finished, folder, GRAPH)
        assert name_of(finished, folder) != name_of(finished)


def test_a_snapshot_keeps_its_name_whatever_its_edges(finished: "FinishedRun") -> None:
    folder = finished.snapshot()
    name = name_of(finished, folder)
    assert name == name_of(finished, folder)
    assert name != name_of(finished)
    remove_last_edge(folder)
    assert name_of(finished, folder) == name


def test_the_graph_the_folder_and_its_nodes_decide_on_the_name(finished: "FinishedRun") -> None:
    folder = finished.snapshot()
    names = [name_of(finished, folder), name_of(finished, folder, "another")]
    copied = finished.root / "copied"
    shutil.copytree(folder, copied)
    names.append(name_of(finished, copied))
    change_features(folder)
    names.append(name_of(finished, folder))
    assert len(set(names)) == 4


def test_features_of_a_snapshot_are_those_of_training_in_their_order(
    finished: "FinishedRun",
) -> None:
    folder = finished.snapshot()
    nodes = pq.read_table(folder / "nodes.parquet")
    pq.write_table(nodes.select(["id", "rent", "age"]), folder / "nodes.parquet")
    with pytest.raises(InputError, match="same order"):
        name_of(finished, folder)
    pq.write_table(nodes.select(["id", "age"]), folder / "nodes.parquet")
    with pytest.raises(InputError, match="1 are missing"):
        name_of(finished, folder)


def test_the_data_party_sees_what_answers_cost(finished: "FinishedRun") -> None:
    with open_embedding_server(finished.data) as server:
        assert "answers are free" in server.served_graph.describe()[0]
    with open_embedding_server(
        finished.data,
        snapshot=finished.snapshot(),
        graph=LATER_GRAPH,
        noise=NoiseSource.for_simulation(5),
    ) as server:
        text = " ".join(server.served_graph.describe())
    assert "epsilon 8 at delta" in text
    assert "is reserved, 0 of it is spent" in text
    assert "adds up" in text


def test_a_damaged_snapshot_file_is_named(finished: "FinishedRun") -> None:
    folder = finished.snapshot()
    name = name_of(finished, folder)
    path = finished.data.party.state / "snapshots" / name / "snapshot.json"
    path.write_text("{}")
    with pytest.raises(VesperError, match=r"snapshot\.json"):
        name_of(finished, folder)
