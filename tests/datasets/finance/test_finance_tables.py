from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from vesper.datasets.finance.finance_tables import RETURNING_SHARE, RISKY_SHARE, write_tables
from vesper.progress import no_progress

TRAIN = datetime(2023, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finance")
    write_tables(
        folder,
        num_nodes=(4000, 1000),
        num_edges=(4320, 1080),
        starts=("2023-01-02", "2023-02-06"),
        seed=0,
        progress=no_progress,
    )
    return folder


def test_columns(folder: Path) -> None:
    columns = {
        "transfers": ["time", "src", "dst", "amount"],
        "activity": ["time", "user", "type", "amount", "channel"],
        "known_labels": ["id", "label", "time"],
    }
    for name, names in columns.items():
        assert pq.read_schema(folder / f"{name}.parquet").names == names


def test_users_return_and_are_labelled_once_in_each_window(folder: Path) -> None:
    labels = pq.read_table(folder / "known_labels.parquet")
    users, label = labels["id"].to_numpy(), labels["label"].to_numpy()
    assert len(np.unique(users[:4000])) == 4000
    assert len(np.unique(users[4000:])) == 1000
    assert len(np.intersect1d(users[:4000], users[4000:])) == round(1000 * RETURNING_SHARE)
    assert label[:4000].mean() == pytest.approx(RISKY_SHARE)
    assert label[4000:].mean() == pytest.approx(RISKY_SHARE)


def test_returning_is_independent_of_risk(folder: Path) -> None:
    labels = pq.read_table(folder / "known_labels.parquet")
    users, label = labels["id"].to_numpy(), labels["label"].to_numpy()
    back = np.isin(users[4000:], users[:4000])
    assert label[4000:][back].mean() == pytest.approx(RISKY_SHARE, abs=0.04)


def seconds(folder: Path, name: str) -> NDArray[np.int64]:
    """Times of a table, in seconds since the start of the train window."""
    times = pq.read_table(folder / f"{name}.parquet")["time"].cast(pa.timestamp("s", tz="UTC"))
    return times.cast(pa.int64()).to_numpy() - int(TRAIN.timestamp())


def test_activity_stays_inside_the_windows(folder: Path) -> None:
    days = seconds(folder, "activity") // 86_400
    assert set(days.tolist()) == {*range(28), *range(35, 63)}


def test_some_transfers_make_no_edge(folder: Path) -> None:
    transfers = pq.read_table(folder / "transfers.parquet")
    src, dst = transfers["src"].to_numpy(), transfers["dst"].to_numpy()
    known = pq.read_table(folder / "known_labels.parquet")["id"].to_numpy()
    days = seconds(folder, "transfers") // 86_400
    assert (src == dst).sum() == 43 + 11
    assert (~np.isin(dst, known)).sum() == 43 + 11
    assert ((days >= 28) & (days < 35)).sum() == 43
    assert (transfers["amount"].to_numpy() > 0).all()
