"""`[[data_party]]` tables of a simulation."""

from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.session.config import load_config
from vesper.session.data_parties import (
    ONLY_DATA_PARTY,
    SimulatedParty,
    config_for,
    is_only_party,
    load_simulation,
)

TWO = """
[privacy]
epsilon = 4.0

[[data_party]]
name = "platform"

[[data_party]]
name = "bank-transfers"
own = true
epsilon = 2.0
delta = 1e-7
folder = "transfers"
"""


def load(tmp_path: Path, text: str) -> tuple[SimulatedParty, ...]:
    (tmp_path / "run.toml").write_text(text)
    return load_simulation(tmp_path / "run.toml", {})[1]


def test_each_party_has_its_own_budget(tmp_path: Path) -> None:
    first, second = load(tmp_path, TWO)
    config = load_simulation(tmp_path / "run.toml", {"epsilon": 3.0})[0]
    assert config_for(config, first) == config
    own = config_for(config, second).privacy
    assert (own.epsilon, own.delta, second.folder) == (2.0, 1e-7, Path("transfers"))
    assert config_for(config, second).run == config.run


def test_without_tables_there_is_one_data_party(tmp_path: Path) -> None:
    assert load(tmp_path, "[run]\nseed = 3\n") == (ONLY_DATA_PARTY,)
    assert load_simulation(None, {"epsilon": 1.0})[1] == (ONLY_DATA_PARTY,)


def test_a_table_is_never_mistaken_for_the_only_data_party(tmp_path: Path) -> None:
    """Not even one with the same name and nothing else; any name of the graph changes nothing."""
    first, _ = load(tmp_path, '[[data_party]]\nname = "data"\n[[data_party]]\nname = "other"\n')
    assert not is_only_party(first)
    assert is_only_party(ONLY_DATA_PARTY.model_copy(update={"graph": "payments"}))


def test_each_graph_may_have_a_name(tmp_path: Path) -> None:
    named = '[[data_party]]\nname = "a"\ngraph = "payments-2026"\n[[data_party]]\nname = "b"\n'
    assert [party.graph for party in load(tmp_path, named)] == ["payments-2026", "simulation"]
    with pytest.raises(InputError, match=r"'graph': .* letters, digits"):
        load(tmp_path, '[[data_party]]\nname = "a"\ngraph = "two words"\n')


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('name = "a"\nepsilom = 2.0', r"\[\[data_party\]\] 1: unknown setting 'epsilom'; did you"),
        ("epsilon = 2.0", r"\[\[data_party\]\] 1: setting 'name' is missing"),
        ('name = "a"\nepsilon = 0', r"\[\[data_party\]\] 1: setting 'epsilon'"),
        ('name = "a/b"', r"\[\[data_party\]\] 1: setting 'name'"),
        ('name = "a"\n[[data_party]]\nname = "a"', "a different name, got a more than once"),
        (
            'name = "a"\nown = true\n[[data_party]]\nname = "b"\nown = true',
            "at most one .* with own = true",
        ),
    ],
)
def test_invalid_tables_are_refused(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, f"[[data_party]]\n{table}\n")


def test_a_single_table_is_not_a_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"write one \[\[data_party\]\] for each"):
        load(tmp_path, '[data_party]\nname = "a"\n')


def test_verbs_with_one_data_party_refuse_tables(tmp_path: Path) -> None:
    load(tmp_path, TWO)
    with pytest.raises(InputError, match="expected a single data party here"):
        load_config(tmp_path / "run.toml", {})


def test_ledger_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """The budget must be the same one, whatever the working directory is."""
    (tmp_path / "b").mkdir()
    table = '[[data_party]]\nname = "a"\nledger = '
    assert load(tmp_path, table + '"b/a.sqlite"')[0].ledger == tmp_path / "b" / "a.sqlite"
    absolute = tmp_path / "other.sqlite"
    assert load(tmp_path / "b", f'{table}"{absolute}"')[0].ledger == absolute
