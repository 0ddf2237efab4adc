"""`vesper align` at one party, with the other over gRPC on loopback."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.deployment.alignment.align import Alignment, align_data, align_labels
from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.connect import peer_connection
from vesper.errors import InputError
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal
    from tests.conftest import Institutions


def other_side(path: Path) -> Alignment:
    """Do what the command does, at the other party."""
    config = load_party_config(path)
    with peer_connection(config) as channel:
        if config.party.role == "data":
            return align_data(channel, open_data(config.party.folder).ids)
        return align_labels(channel, open_labels(config.party.folder).ids, path=path)


@contextmanager
def running(path: Path) -> Iterator["Future[Alignment]"]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(other_side, path)


@pytest.mark.parametrize("role", ["data", "label"])
def test_both_hold_the_same_ids(
    terminal: "Terminal", institutions: "Institutions", role: str
) -> None:
    here, there = institutions.settings if role == "data" else institutions.settings[::-1]
    with running(there) as other:
        assert terminal.run("align", "--config", here, "--json") == 0
        facts = json.loads(terminal.out)
        assert (facts["proof"], facts["common"]) == (other.result().proof, 60)
    written = pq.read_table(here.parent / "state" / "aligned.parquet")["id"].to_pylist()
    assert written == other.result().ids.to_pylist() == sorted(map(str, range(60)))


@pytest.mark.parametrize("role", ["data", "label"])
def test_labels_of_unknown_nodes(
    terminal: "Terminal", institutions: "Institutions", role: str
) -> None:
    path = institutions.label / "label" / "labels.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "id", pa.array(range(57, 117))), path)
    here, there = institutions.settings if role == "data" else institutions.settings[::-1]
    with running(there) as other:
        assert terminal.run("align", "--config", here) == 2
        messages = {role: terminal.err, "other": str(other.exception())}
    assert isinstance(other.exception(), InputError)
    data, label = messages.values() if role == "data" else reversed(messages.values())
    assert "57 of 60 ids of the label party are not nodes here" in data
    assert "57 of 60 ids are unknown to the data party (first 3: 100, 101, 102)" in label
    assert not (here.parent / "state" / "aligned.parquet").exists()


def test_private_without_the_library(
    terminal: "Terminal", institutions: "Institutions", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert terminal.run("align", "--config", institutions.settings[0], "--private") == 2
    assert "pip install 'vesper[psi]'" in terminal.err
