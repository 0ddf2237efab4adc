"""`[[data_party]]` tables of a simulation."""

from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.session.config import load_config
from vesper.session.data_parties import ONLY_DATA_PARTY, SimulatedParty, config_for, load_simulation

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


def test_each_party_and_what_holds_for_it(tmp_path: Path) -> None:
    first, second = load(tmp_path, TWO)
    config = load_simulation(tmp_path / "run.toml", {"epsilon": 3.0})[0]
    assert config_for(config, first) == config
    own = config_for(config, second).privacy
    assert (own.epsilon, own.delta, second.folder) == (2.0, 1e-7, Path("transfers"))
    assert config_for(config, second).run == config.run


def test_without_tables_there_is_one(tmp_path: Path) -> None:
    assert load(tmp_path, "[run]\nseed = 3\n") == (ONLY_DATA_PARTY,)
    assert load_simulation(None, {"epsilon": 1.0})[1] == (ONLY_DATA_PARTY,)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('name = "a"\nepsilom = 2.0', r"\[\[data_party\]\] 1: unknown setting 'epsilom'; did you"),
        ("epsilon = 2.0", r"\[\[data_party\]\] 1: setting 'name' is missing"),
        ('name = "a"\nepsilon = 0', r"\[\[data_party\]\] 1: setting 'epsilon'"),
        ('name = "a/b"', r"\[\[data_party\]\] 1: setting 'name'"),
        ('name = "a"\n[[data_party]]\nname = "a"', "a name of its own, got a more than once"),
        (
            'name = "a"\nown = true\n[[data_party]]\nname = "b"\nown = true',
            "at most one .* with own = true",
        ),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path, f"[[data_party]]\n{table}\n")


def test_one_table_is_not_a_list_of_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"write \[\[data_party\]\], once for each"):
        load(tmp_path, '[data_party]\nname = "a"\n')


def test_verbs_with_one_data_party_say_so(tmp_path: Path) -> None:
    load(tmp_path, TWO)
    with pytest.raises(InputError, match="here there is one data party"):
        load_config(tmp_path / "run.toml", {})


def test_a_ledger_lies_beside_the_file(tmp_path: Path) -> None:
    """What must hold: the same budget, wherever the command is typed."""
    (tmp_path / "b").mkdir()
    table = '[[data_party]]\nname = "a"\nledger = '
    assert load(tmp_path, table + '"b/a.sqlite"')[0].ledger == tmp_path / "b" / "a.sqlite"
    absolute = tmp_path / "other.sqlite"
    assert load(tmp_path / "b", f'{table}"{absolute}"')[0].ledger == absolute
