"""A folder holds one study and is used by one process at a time."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.study.folder import FACTS, Study, open_folder, read_study
from vesper.study.presets import find_grid

STUDY = Study(
    name="trade-off",
    small=True,
    grid=find_grid("trade-off")[1],
    seeds=2,
    sources={"reddit": "simulated, 5 nodes"},
)


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    with open_folder(tmp_path / "new", STUDY):
        assert read_study(tmp_path / "new").as_json() == STUDY.as_json()
    json.loads((tmp_path / "new" / FACTS).read_text(), parse_constant=lambda word: 1 / 0)


def test_more_seeds_do_not_change_the_study(tmp_path: Path) -> None:
    with open_folder(tmp_path, STUDY):
        pass
    with open_folder(tmp_path, replace(STUDY, seeds=9)):
        assert read_study(tmp_path).seeds == 9


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(STUDY, name="table-1"), "holds the study 'trade-off --small', expected 'table-1"),
        (replace(STUDY, small=False), "expected 'trade-off'"),
        (replace(STUDY, sources={"reddit": "folder x"}), "was simulated, 5 nodes so far"),
    ],
)
def test_another_study_is_refused(tmp_path: Path, other: Study, message: str) -> None:
    with open_folder(tmp_path, STUDY):
        pass
    with pytest.raises(InputError, match=message), open_folder(tmp_path, other):
        pass
    assert read_study(tmp_path).as_json() == STUDY.as_json()


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="found something else"), open_folder(tmp_path, STUDY):
        pass
    with pytest.raises(InputError, match="expected the description of a study"):
        read_study(tmp_path)


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f"{FACTS}.0a1b2c3d.partial").write_text("{")
    with open_folder(tmp_path, STUDY):
        assert [path.name for path in tmp_path.iterdir()] == [FACTS]


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with (
        open_folder(tmp_path, STUDY),
        pytest.raises(InputError, match="another 'vesper study run'"),
        open_folder(tmp_path, STUDY),
    ):
        pass
    with open_folder(tmp_path, STUDY):
        pass
