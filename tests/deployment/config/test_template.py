"""The template loads as it is, explains every setting, and overwrites nothing."""

import re
import tomllib
from pathlib import Path

import pytest

from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.config.template import TABLES, RoleName, template_text, write_template
from vesper.errors import InputError
from vesper.method.settings import Config

ROLES: list[RoleName] = ["data", "label"]


@pytest.mark.parametrize("role", ROLES)
def test_it_loads_with_defaults(tmp_path: Path, role: RoleName) -> None:
    write_template(tmp_path / "new" / "party.toml", role)
    config = load_party_config(tmp_path / "new" / "party.toml")
    assert config.party.role == role
    assert config.shared == Config()


def test_the_two_files_name_each_other() -> None:
    data, label = (tomllib.loads(template_text(role, "f.toml"))["party"] for role in ROLES)
    assert (data["name"], data["peer"]) == (label["peer"], label["name"])


@pytest.mark.parametrize("role", ROLES)
def test_settings_left_to_their_defaults_load_too(tmp_path: Path, role: RoleName) -> None:
    text = re.sub(r"^#(\w+ = )", r"\1", template_text(role, "f.toml"), flags=re.MULTILINE)
    (tmp_path / "f.toml").write_text(text)
    assert load_party_config(tmp_path / "f.toml").shared == Config()
    assert "width = 128" in text


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_there_and_explained(table: str) -> None:
    text = template_text("data", "f.toml")
    for name, field in TABLES[table].model_fields.items():
        assert field.description, f"{table}.{name} has no line that explains it"
        assert re.search(rf"^# .*\n#?{name} =", text, flags=re.MULTILINE)
    assert "None" not in text


def test_the_name_of_the_graph_and_the_ledger_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "data.toml"
    write_template(path, "data", graph="payments", ledger=Path("books/ledger.sqlite"))
    party = load_party_config(path).party
    assert (party.graph, party.ledger) == ("payments", tmp_path / "books" / "ledger.sqlite")
    text = template_text("data", "f.toml")
    assert '#graph = "payments-2026-11"' in text
    assert '#ledger = "ledger.sqlite"' in text


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "party.toml"
    path.write_text("precious")
    with pytest.raises(InputError, match="already exists and will not be overwritten"):
        write_template(path, "data")
    assert path.read_text() == "precious"
