"""A finished run can be read for predictions; an unfinished or changed one is refused."""

import shutil
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.saved_run import (
    DATA_RUN_FILE,
    LABEL_RUN_FILE,
    read_saved_data_run,
    read_saved_label_run,
)
from vesper.errors import InputError
from vesper.session.contract import approve

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train


def test_both_parties_save_what_they_need(finished: "FinishedRun") -> None:
    data_run, label_run = read_saved_data_run(finished.data), read_saved_label_run(finished.label)
    assert data_run.session == label_run.session
    assert data_run.contract == label_run.contract
    assert data_run.sizes == label_run.sizes
    assert data_run.columns == [["age", 1], ["rent", 1]]
    assert data_run.roster.train[:2] == ("u00", "u03")
    assert label_run.calibration.classes == (0, 1)
    assert data_run.config.privacy.hops == 2


def test_numbers_keep_their_bins(train: "Train") -> None:
    calibration = read_saved_label_run(train("numbers").label).calibration
    assert calibration.classes == ()
    assert calibration.columns == ["score"]
    assert len(calibration.constants) == 8


def test_an_unfinished_run_is_refused(finished: "FinishedRun") -> None:
    shutil.rmtree(finished.data.party.state / "result")
    with pytest.raises(InputError, match="train first"):
        read_saved_data_run(finished.data)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"{}"])
def test_damaged_files_are_refused_by_name(finished: "FinishedRun", content: bytes) -> None:
    (finished.data.party.state / "result" / DATA_RUN_FILE).write_bytes(content)
    with pytest.raises(InputError, match=rf"{DATA_RUN_FILE}.*cannot be read"):
        read_saved_data_run(finished.data)
    (finished.label.party.state / "result" / LABEL_RUN_FILE).write_bytes(content)
    with pytest.raises(InputError, match=rf"{LABEL_RUN_FILE}.*cannot be read"):
        read_saved_label_run(finished.label)


def test_a_run_of_an_older_version_is_refused(finished: "FinishedRun") -> None:
    (finished.data.party.state / "result" / DATA_RUN_FILE).unlink()
    with pytest.raises(InputError, match="older version"):
        read_saved_data_run(finished.data)


def test_settings_that_have_changed_since_training_are_refused(finished: "FinishedRun") -> None:
    def changed(config: PartyConfig) -> PartyConfig:
        text = config.path.read_text()
        config.path.write_text(text.replace("seed = 3", "seed = 4"))
        return load_party_config(config.path)

    data = changed(finished.data)
    with pytest.raises(InputError, match="since the approval"):
        read_saved_data_run(data)
    approve(data.party.state, data.shared)
    with pytest.raises(InputError, match="since training"):
        read_saved_data_run(data)
