"""A run is resumed with the ledger, ids and classes that it began with, or not at all."""

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.fixtures.observers import CallingObserver

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.deployment.state_folder import (
    guard_ledger,
    guard_parties,
    guard_value,
    refuse_lost_ledger,
    state_folder_lock,
    wait_for_peer_to_finish,
)
from vesper.errors import InputError, VesperError
from vesper.privacy.ledger.store import Ledger

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both


def test_a_guarded_value_must_stay_the_same(tmp_path: Path) -> None:
    path = tmp_path / "value"
    guard_value(path, "a", resume=False, refusal="other")
    guard_value(path, "a", resume=True, refusal="other")
    with pytest.raises(InputError, match="other"):
        guard_value(path, "b", resume=True, refusal="other")
    guard_value(path, "b", resume=False, refusal="other")  # a new run
    assert path.read_text() == "b"
    path.unlink()
    path.mkdir()
    with pytest.raises(VesperError, match="cannot be used"):
        guard_value(path, "b", resume=True, refusal="other")


def test_half_written_files_of_a_killed_process_go_when_a_party_starts(tmp_path: Path) -> None:
    for name in ("checkpoint.npz.0a1b2c3d.partial", "session.77.partial", "checkpoint.npz"):
        (tmp_path / name).write_bytes(b"")
    with state_folder_lock(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.npz", "lock"}


def test_another_ledger_or_none_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    with closing(Ledger(first, clock=float)) as ledger:
        guard_ledger(tmp_path, ledger, resume=False)
        guard_ledger(tmp_path, ledger, resume=True)
    refuse_lost_ledger(tmp_path, first, resume=True)
    refuse_lost_ledger(tmp_path, second, resume=False)
    with pytest.raises(InputError, match="expected the ledger that this run began with"):
        refuse_lost_ledger(tmp_path, second, resume=True)
    with (
        closing(Ledger(second, clock=float)) as other,
        pytest.raises(InputError, match="began with another ledger"),
    ):
        guard_ledger(tmp_path, other, resume=True)


@pytest.fixture
def protected(both: "Both") -> "Both":
    both.change("hops = 2", "hops = 2\nlabel_epsilon = 1.0")
    path = both.settings[1]
    path.write_text(
        re.sub("^#?ledger = .*", 'ledger = "labels.sqlite"', path.read_text(), flags=re.M)
    )
    return both


def change_table(path: Path, column: str, values: Callable[[list[Any]], list[Any]]) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, [values(table[column].to_pylist())]), path)


def test_a_label_that_changes_before_a_resume_changes_nothing_that_crosses(
    protected: "Both",
) -> None:
    """The bank is warned; a refusal would reveal to its peer that a label has changed."""
    data, label = protected.configs()
    ours, theirs = protected.run(data, label)
    ours.result()
    first = theirs.result()
    transcripts = [config.party.state / "transcript.tsv" for config in (data, label)]
    crossed = [path.read_bytes() for path in transcripts]
    for config in (data, label):  # as if both had been killed before their results were written
        shutil.rmtree(config.party.state / "result")
    path = label.party.folder / "labels.parquet"
    change_table(path, "label", lambda labels: [1 - labels[0], 1 - labels[1], *labels[2:]])
    warnings: list[str] = []
    resumed = protected.run(
        data,
        label,
        resume=True,
        of_label={"resume": True, "observer": CallingObserver(warning=warnings.append)},
    )
    for side in resumed:
        side.result()
    assert [path.read_bytes() for path in transcripts] == crossed
    assert resumed[1].result().stages == first.stages
    (warning,) = (text for text in warnings if "changed" in text)
    assert warning.startswith("2 labels have changed")
    assert protected.charged(label) == 1


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("id", lambda ids: [*ids[:-1], 99]),
        ("split", lambda splits: ["val", *splits[1:]]),
        ("label", lambda labels: [2, *labels[1:]]),
    ],
)
def test_a_run_with_other_ids_splits_or_classes_is_not_resumed(
    protected: "Both", column: str, change: Callable[[list[Any]], list[Any]]
) -> None:
    data, label = protected.configs()
    for side in protected.run(data, label):
        side.result()
    (label.party.state / "result").rename(label.party.state / "elsewhere")  # as if killed before
    change_table(label.party.folder / "labels.parquet", column, change)
    with pytest.raises(InputError, match="the ids, splits and classes that this run began with"):
        run_label_party(label, resume=True)
    assert protected.charged(label) == 1


def test_a_resumed_run_refuses_a_lost_ledger(protected: "Both") -> None:
    data, label = protected.configs()
    for side in protected.run(data, label):
        side.result()
    sides: list[tuple[PartyConfig, Callable[..., Any]]]
    sides = [(label, run_label_party), (data, run_data_party)]
    for config, again in sides:
        (config.party.state / "result").rename(config.party.state / "elsewhere")
        assert config.party.ledger is not None
        for file in config.party.ledger.parent.glob(f"{config.party.ledger.name}*"):
            file.rename(file.with_name(f"moved-{file.name}"))
        with pytest.raises(InputError, match="expected the ledger that this run began with"):
            again(config, resume=True)
        assert not config.party.ledger.exists()


def test_two_finished_parties_release_each_other(both: "Both") -> None:
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    with ThreadPoolExecutor(2) as pool:
        staying = [pool.submit(wait_for_peer_to_finish, config) for config in (data, label)]
        assert [each.result(timeout=60) for each in staying] == [True, True]
    assert wait_for_peer_to_finish(label) is False


def test_data_parties_keep_their_order(tmp_path: Path) -> None:
    guard_parties(tmp_path, ["platform", "telecom"], resume=False)
    guard_parties(tmp_path, ["platform", "telecom"], resume=True)
    for others in (["telecom", "platform"], ["platform"], ["platform", "telecom", "shop"]):
        with pytest.raises(InputError, match="in the same order"):
            guard_parties(tmp_path, others, resume=True)
