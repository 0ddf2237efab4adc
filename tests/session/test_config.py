"""Mistakes in TOML files of settings are reported in one line that names the place."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from vesper.errors import InputError
from vesper.session.config import (
    MAX_TOML_BYTES,
    explain_first_error,
    keys_of,
    read_tables,
    read_toml,
    suggest_key,
)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 100_000, "too many brackets"),
        ("x = " + "[" * 900 + "]" * 900, "too many brackets"),
        ("[run]\nepochs = " + "9" * 5_000, "4300 digits"),
        ("[run]\nseed = 0x" + "f" * 5_000, "'seed': expected whole numbers of at most 64 bits"),
        ("[run]\nx = [{seed = -9223372036854775809}]", "found one of 64 bits"),
        ("#" * (MAX_TOML_BYTES + 1), "at most 1 MiB, found a larger one"),
        ("x = '\udcff'", "not a readable TOML file"),
    ],
)
def test_a_file_that_is_hard_to_read(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=message) as refused:
        read_toml(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
