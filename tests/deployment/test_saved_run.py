"""A finished run can be asked; one that is not, or was changed, says why not."""

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


def test_both_parties_keep_what_they_need(finished: "FinishedRun") -> None:
    answering, asking = read_saved_data_run(finished.data), read_saved_label_run(finished.label)
    assert answering.session == asking.session
    assert answering.contract == asking.contract
    assert answering.sizes == asking.sizes
    assert answering.columns == [["age", 1], ["rent", 1]]
    assert answering.roster.train[:2] == ("u00", "u03")
    assert asking.calibration.classes == (0, 1)
    assert answering.config.privacy.hops == 2


def test_numbers_keep_their_bins(train: "Train") -> None:
    calibration = read_saved_label_run(train("numbers").label).calibration
    assert calibration.classes == ()
    assert calibration.columns == ["score"]
    assert len(calibration.constants) == 8


def test_a_run_that_is_not_finished_is_named(finished: "FinishedRun") -> None:
    shutil.rmtree(finished.data.party.state / "result")
    with pytest.raises(InputError, match="train first"):
        read_saved_data_run(finished.data)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"{}"])
def test_damaged_files_are_named(finished: "FinishedRun", content: bytes) -> None:
    (finished.data.party.state / "result" / DATA_RUN_FILE).write_bytes(content)
    with pytest.raises(InputError, match=rf"{DATA_RUN_FILE}.*cannot be read"):
        read_saved_data_run(finished.data)
    (finished.label.party.state / "result" / LABEL_RUN_FILE).write_bytes(content)
    with pytest.raises(InputError, match=rf"{LABEL_RUN_FILE}.*cannot be read"):
        read_saved_label_run(finished.label)


def test_a_run_of_an_older_version_says_so(finished: "FinishedRun") -> None:
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
