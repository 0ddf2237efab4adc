"""One party's file: which mistakes are refused, what is relative to it, what is shared."""

from pathlib import Path

import pytest

from vesper.deployment.config.party_config import Address, PartyConfig, load_party_config
from vesper.deployment.config.template import template_text
from vesper.errors import InputError

DATA = template_text("data", "data.toml")


def load(folder: Path, text: str) -> PartyConfig:
    path = folder / "data.toml"
    path.write_text(text)
    return load_party_config(path)


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text = DATA.replace('"tls/platform.key"', '"/secret/platform.key"')
    text = text.replace("#ledger = ", 'ledger = "books/ledger.sqlite"\n#')
    config = load(tmp_path, text.replace("#witness =", 'witness = "share/witness"'))
    assert config.party.folder == tmp_path / "data"
    assert config.party.ledger == tmp_path / "books" / "ledger.sqlite"
    assert config.party.witness == tmp_path / "share" / "witness"
    assert config.tls.authority == tmp_path / "tls" / "authority.pem"
    assert config.tls.key == Path("/secret/platform.key")


def test_the_ledger_is_the_users_unless_the_file_names_one(
    tmp_path: Path, state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path("vesper") / "ledger.sqlite"
    assert load(tmp_path, DATA).party.ledger == state_home / own
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert load(tmp_path, DATA).party.ledger == tmp_path / "home" / ".local" / "state" / own
    text = DATA.replace("#ledger = ", 'ledger = "~/ledger.sqlite"\n#')
    assert load(tmp_path, text).party.ledger == tmp_path / "home" / "ledger.sqlite"


def test_what_is_shared_starts_from_the_defaults_of_the_method(tmp_path: Path) -> None:
    config = load(tmp_path, DATA.replace('method = "certified"', 'method = "mlp"\nseed = 3'))
    assert (config.shared.run.method, config.shared.run.seed) == ("mlp", 3)
    assert "name" not in config.shared.model_dump_json()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("bank.example:7101", Address("bank.example", 7101)),
        ("[::1]:80", Address("::1", 80)),
        ("10.0.0.1:65535", Address("10.0.0.1", 65535)),
    ],
)
def test_addresses(tmp_path: Path, text: str, address: Address) -> None:
    listen = load(tmp_path, DATA.replace("0.0.0.0:7101", text)).party.listen
    assert listen == address
    assert str(listen) == text


@pytest.mark.parametrize("text", ["bank", "bank:", ":80", "bank:0", "bank:65536", "bank:x", "b:²"])
def test_invalid_addresses(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"'party.listen': .*expected 'host:port'"):
        load(tmp_path, DATA.replace("0.0.0.0:7101", text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("when_lost", "when_lots", "unknown setting 'party.when_lots'; did you mean 'party.when_l"),
        ("patience = 30.0", "patince = 30.0", "did you mean 'party.patience'"),
        ("epsilon = 4.0", "epsilom = 4.0", "did you mean 'privacy.epsilon'"),
        ("epsilon = 4.0", "epsilon = -4.0", "setting 'privacy.epsilon': Input should be greater"),
        ('role = "data"', 'role = "both"', "setting 'party.role': Input should be 'data' or"),
        ("#graph =", 'graph = "a b"\n#', "setting 'party.graph': .*letters, digits, dots"),
        ('peer = "bank"', 'peer = "platform"', "expected two names, got 'platform'"),
        ('peer = "bank"', 'peer = "Bank of X"', "expected one word"),
        ('peer = "bank"', "", "setting 'party.peer' is missing"),
        ("listen =", "#listen =", "expected exactly one of listen and connect"),
        ("#connect =", 'connect = "a:1"', "expected exactly one of listen and connect"),
        ("patience = 30.0", "patience = inf", "setting 'party.patience'"),
        ('when_lost = "wait"', 'when_lost = "retry"', "Input should be 'wait' or 'stop'"),
        (
            '#engine = "local"',
            'engine = "spark"',
            "'party.engine': Input should be 'local' or 'ray'",
        ),
        ("#ray_address =", 'ray_address = "auto"', "expected engine 'ray' with ray_address"),
        ("\n[tls]\n", "\n[tsl]\n", r"got \[tsl\]"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in DATA
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path, DATA.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'data.toml'}: ")


def test_the_engine_is_a_setting_of_the_data_side_and_not_shared(tmp_path: Path) -> None:
    mine = '#engine = "local"', 'engine = "ray"'
    data = load(tmp_path, DATA.replace(*mine).replace("#ray_address =", 'ray_address = "auto"'))
    assert (data.party.engine, data.party.ray_address) == ("ray", "auto")
    assert data.shared == load(tmp_path, DATA).shared
    with pytest.raises(InputError, match="expected engine 'ray' with role 'data' only"):
        load(tmp_path, template_text("label", "data.toml").replace(*mine))


def test_a_file_without_the_party_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a table \[party\], found none; `vesper init`"):
        load(tmp_path, "[privacy]\nepsilon = 1.0\n")
