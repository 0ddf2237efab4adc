"""Mistakes in TOML files of settings are reported in one line that names the place."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from vesper.errors import InputError
from vesper.session.config import explain_first_error, keys_of, read_tables, suggest_key


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int
    depth: int = 1


class Both(BaseModel):
    table: Table


KEYS = keys_of(table=Table)


def write(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width = 1", r"expected tables \[table\] and \[other\], got 'width' outside of any table"),
        ("[tabel]\nwidth = 1", r"expected tables \[table\] and \[other\], got \[tabel\]"),
        ("[table", "not a readable TOML file"),
    ],
)
def test_a_file_without_known_settings(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tables(write(tmp_path, text), ("table", "other"))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a TOML file, got 'No such file or directory'"):
        read_tables(tmp_path / "none.toml", ("table",))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wdith": 1, "width": 2}, "f.toml: unknown setting 'table.wdith'; did you mean 'table.w"),
        ({}, "f.toml: setting 'table.width' is missing"),
        ({"width": "x"}, "f.toml: setting 'table.width': Input should be a valid integer"),
    ],
)
def test_the_first_mistake_is_explained(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Both.model_validate({"table": values})
    assert explain_first_error(Path("f.toml"), caught.value, KEYS).startswith(message)


def test_for_an_unrecognisable_key_all_keys_of_its_table_are_listed() -> None:
    assert suggest_key("b.zzzz", ["a.x", "b.width", "b.depth"]) == "; known are width, depth"
