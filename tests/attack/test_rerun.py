"""Which runs can be repeated."""

from pathlib import Path

import pytest

from vesper.attack.rerun import read_config
from vesper.errors import InputError


def test_a_run_of_several_data_parties_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data_party-platform.npz").touch()
    with pytest.raises(InputError, match="expected a run with one data party, found several"):
        read_config(tmp_path)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the settings of a run"):
        read_config(tmp_path)
