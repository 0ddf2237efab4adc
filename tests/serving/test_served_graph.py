"""Which graph is served: that of training, unchanged, or a snapshot with one name."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError, VesperError
from vesper.serving.embedding_server import open_embedding_server

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train


def name_of(finished: "FinishedRun", snapshot: Path | None = None) -> str:
    with open_embedding_server(finished.data, snapshot=snapshot) as server:
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


def test_another_edge_is_not_the_graph_of_training(finished: "FinishedRun") -> None:
    remove_last_edge(finished.data.party.folder)
    before = finished.ledger.read_bytes()
    with pytest.raises(InputError, match="found no release of this graph"):
        name_of(finished)
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


def test_the_graph_of_training_is_no_snapshot(finished: "FinishedRun") -> None:
    copied = finished.root / "copied"
    shutil.copytree(finished.data.party.folder, copied)
    with pytest.raises(InputError, match="graph of training"):
        name_of(finished, copied)


def test_a_snapshot_keeps_its_name_and_changed_edges_make_a_new_one(
    finished: "FinishedRun",
) -> None:
    folder = finished.snapshot()
    name = name_of(finished, folder)
    assert name == name_of(finished, folder)
    assert name != name_of(finished)
    remove_last_edge(folder)
    assert name_of(finished, folder) != name


def test_equal_edges_get_no_second_name_and_other_features_no_second_release(
    finished: "FinishedRun",
) -> None:
    folder = finished.snapshot()
    name_of(finished, folder)
    copied = finished.root / "copied"
    shutil.copytree(folder, copied)
    with pytest.raises(InputError, match="exactly those of"):
        name_of(finished, copied)
    change_features(folder)
    with pytest.raises(InputError, match="other ids or features"):
        name_of(finished, folder)


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
    with open_embedding_server(finished.data, snapshot=finished.snapshot()) as server:
        text = " ".join(server.served_graph.describe())
    assert "its own budget, epsilon 8" in text
    assert "adds up" in text


def test_a_damaged_snapshot_file_is_named(finished: "FinishedRun") -> None:
    folder = finished.snapshot()
    name = name_of(finished, folder)
    path = finished.data.party.state / "snapshots" / name / "snapshot.json"
    path.write_text("{}")
    with pytest.raises(VesperError, match=r"snapshot\.json"):
        name_of(finished, folder)
