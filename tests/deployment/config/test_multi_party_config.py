"""The label party's file with several data parties."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.config.multi_party_config import load_multi_party_config, load_peer_config
from vesper.deployment.config.party_config import load_party_config
from vesper.errors import InputError
from vesper.session.data_parties import load_simulation

if TYPE_CHECKING:
    from tests.conftest import Institutions

PLATFORM = '[[data_party]]\nname = "platform"\nconnect = "127.0.0.1:7101"\n'
TELECOM = '[[data_party]]\nname = "telecom"\nlisten = "127.0.0.1:7102"\n'
OWN = '[[data_party]]\nname = "transfers"\nown = true\nfolder = "own"\ngraph = "transfers-2026"\n'


def label_file(institutions: "Institutions", tables: str) -> Path:
    path = institutions.settings[1]
    lines = [
        line
        for line in path.read_text().splitlines()
        if not line.startswith(("peer =", "connect ="))
    ]
    path.write_text("\n".join([*lines, tables]))
    return path


def test_each_pair_is_as_if_the_two_were_alone(institutions: "Institutions") -> None:
    tables = f'{PLATFORM}epsilon = 2.0\n{TELECOM}when_lost = "go-on"\npatience = 3.0\n{OWN}'
    tables += 'ledger = "own.sqlite"\n'
    path = label_file(institutions, tables)
    table = load_multi_party_config(path)
    first, second, third = table.peer_configs
    state = path.parent / "state"
    assert [pair.party.peer for pair in table.peer_configs] == ["platform", "telecom", "transfers"]
    assert [pair.party.state for pair in table.peer_configs] == [
        state / "with" / name for name in ("platform", "telecom", "transfers")
    ]
    assert (first.shared.privacy.epsilon, second.shared.privacy.epsilon) == (2.0, 4.0)
    assert (first.party.when_lost, first.party.patience) == ("wait", 30.0)
    # A lost party stops its pair; the run continues without it.
    assert (second.party.when_lost, second.party.patience) == ("stop", 3.0)
    assert (third.party.listen, third.party.connect) == (None, None)
    assert table.own.party.state == state
    assert table.graph is not None
    own = table.graph.party
    assert (own.role, own.name, own.peer, own.state) == ("data", "transfers", "bank", state / "own")
    assert (own.folder, own.ledger) == (path.parent / "own", path.parent / "own.sqlite")
    assert own.graph == "transfers-2026"
    assert len(table.all_configs) == 4


def test_the_own_graph_is_charged_to_the_ledger_of_the_party(
    institutions: "Institutions", state_home: Path
) -> None:
    path = label_file(institutions, PLATFORM + OWN)
    table = load_multi_party_config(path)
    assert table.graph is not None
    assert table.graph.party.ledger == state_home / "vesper" / "ledger.sqlite"
    path.write_text(path.read_text().replace("#ledger =", "ledger ="))
    table = load_multi_party_config(path)
    assert table.graph is not None
    assert table.graph.party.ledger == path.parent / "ledger.sqlite" == table.own.party.ledger


def test_a_file_with_one_peer_is_one_pair(institutions: "Institutions") -> None:
    for path in institutions.settings:
        table = load_multi_party_config(path)
        assert table.peer_configs == (load_party_config(path),) == (table.own,)
        assert (table.peer_settings, table.graph) == ((), None)
        assert load_peer_config(path, None) == table.own


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('[[data_party]]\nname = "platform"\n', "exactly one of listen and connect"),
        (PLATFORM + 'listen = "127.0.0.1:1"\n', "exactly one of listen and connect"),
        (PLATFORM + 'folder = "x"\n', "no folder, graph or ledger"),
        (PLATFORM + 'graph = "x"\n', "no folder, graph or ledger"),
        (PLATFORM + 'ledger = "x"\n', "no folder, graph or ledger"),
        (OWN + 'connect = "127.0.0.1:1"\n', "folder and graph, its name, and no address"),
        (OWN.replace('graph = "transfers-2026"\n', ""), "folder and graph, its name"),
        (OWN.replace("transfers-2026", "trans fers"), "at most 64 letters, digits"),
        (OWN + 'when_lost = "go-on"\n', "'wait' or 'stop' as when_lost"),
        (PLATFORM + 'when_lost = "go_on"\n', "2: setting 'when_lost'|1: setting 'when_lost'"),
        (PLATFORM + PLATFORM, "platform more than once"),
        (PLATFORM.replace('"platform"', '"bank"'), "two names"),
    ],
)
def test_invalid_tables_are_refused(
    institutions: "Institutions", tables: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_multi_party_config(label_file(institutions, tables))


def test_tables_in_the_wrong_place_are_refused(institutions: "Institutions") -> None:
    path = institutions.settings[1]
    path.write_text(f"{path.read_text()}\n{PLATFORM}")
    with pytest.raises(InputError, match=r"expected 'peer' in each \[\[data_party\]\]"):
        load_multi_party_config(path)
    path = institutions.settings[0]
    path.write_text(f"{path.read_text()}\n{PLATFORM}")
    with pytest.raises(InputError, match="in the label party's file only"):
        load_multi_party_config(path)


def test_settings_of_one_pair(institutions: "Institutions") -> None:
    path = label_file(institutions, PLATFORM + TELECOM + OWN)
    assert load_peer_config(path, "telecom").party.peer == "telecom"
    for name in (None, "transfers", "nobody"):
        with pytest.raises(InputError, match="expected one of platform, telecom with --with"):
            load_peer_config(path, name)
    with pytest.raises(InputError, match=r"found 3 tables \[\[data_party\]\]"):
        load_party_config(path)


PAGE = Path(__file__).parents[3] / "docs" / "several-parties.md"


def test_the_files_on_the_page_can_be_read(institutions: "Institutions", tmp_path: Path) -> None:
    simulated, label = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "several.toml").write_text(simulated)
    config, parties = load_simulation(tmp_path / "several.toml", {})
    assert config.privacy.label_epsilon == 4.0
    assert [(each.name, each.own) for each in parties] == [
        ("platform", False),
        ("telecom", False),
        ("transfers", True),
    ]
    tls = re.search(r"(?ms)^\[tls\].*?(?=^\[)", institutions.settings[1].read_text())
    assert tls is not None
    path = institutions.label / "page.toml"
    path.write_text(f"{label}\n{tls[0]}")
    table = load_multi_party_config(path)
    assert [pair.party.peer for pair in table.peer_configs] == ["platform", "telecom", "transfers"]
    assert table.peer_settings[1].when_lost == "go-on"
