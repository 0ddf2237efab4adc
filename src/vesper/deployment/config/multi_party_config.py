"""The label party's file with several data parties: settings of one pair for each of them.

    [[data_party]]            [[data_party]]            [[data_party]]
    name = "platform"         name = "telecom"          name = "bank-transfers"
    connect = "host:7101"     connect = "host:7102"     own = true, folder, graph
    epsilon = 4.0             when_lost = "go-on"

Each pair is as if the two were alone: a contract, a session and a folder `state/with/<name>`. The
label party's own graph, if it has one, is a data party like any other that runs in the same
process, with `state/own`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from vesper.deployment.config.party_config import (
    TABLES,
    AddressSetting,
    PartyConfig,
    PartySettings,
    checked_party_config,
    load_party_config,
    refuse_missing,
)
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.privacy.ledger.graph_name import graph_name
from vesper.session.config import Tables, checked_config, read_tables_with_list
from vesper.session.data_parties import (
    DATA_PARTY_TABLE,
    DataPartySettings,
    checked_parties,
    config_for,
)

UNUSED_ADDRESS = "localhost:1"
"""Placeholder that is never used: a party in the same process has no address."""


class DataPeerSettings(DataPartySettings):
    """One of several data parties, as the label party's file has it."""

    listen: AddressSetting | None = None
    """Wait for it at this address."""
    connect: AddressSetting | None = None
    """Connect to it at this address."""
    patience: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds of silence after which it counts as gone; with when_lost = "go-on" also the seconds
    that it may take for a message that is due. None: as in [party]."""
    when_lost: Literal["wait", "stop", "go-on"] | None = None
    """What to do then: wait for it, stop, or continue without it from what it has sent. None: as
    in [party]."""
    folder: Path | None = None
    """Own graph only: folder of nodes and edges."""
    graph: Annotated[str, AfterValidator(graph_name)] | None = None
    """Own graph only: its name, to which its budget belongs."""
    ledger: Path | None = None
    """Own graph only: ledger to charge its releases to. None: as in [party]."""

    @model_validator(mode="after")
    def _fits_together(self) -> "DataPeerSettings":
        addresses = (self.listen is not None) + (self.connect is not None)
        own_keys = [self.folder, self.graph, self.ledger]
        if self.own and (addresses or self.folder is None or self.graph is None):
            raise ValueError("expected folder and graph, its name, and no address with own = true")
        if not self.own and (own_keys != [None] * 3 or addresses != 1):
            raise ValueError(
                "expected exactly one of listen and connect, and no folder, graph or ledger"
            )
        if self.own and self.when_lost == "go-on":
            raise ValueError("expected 'wait' or 'stop' as when_lost with own = true")
        return self


@dataclass(frozen=True)
class MultiPartyConfig:
    """Settings of the label party and of the data parties it trains with."""

    own: PartyConfig
    """Its own files and settings; with a single data party, those of the pair."""
    peer_configs: tuple[PartyConfig, ...]
    """One for each data party, as if the two were alone."""
    peer_settings: tuple[DataPeerSettings, ...] = ()
    """The `[[data_party]]` tables of the file; empty for a file without them."""
    graph: PartyConfig | None = None
    """Settings of the data party of its own graph; None: it has none."""

    @property
    def all_configs(self) -> tuple[PartyConfig, ...]:
        """All settings that need this party's approval."""
        return self.peer_configs if self.graph is None else (*self.peer_configs, self.graph)

    @property
    def own_graph_peer(self) -> PartyConfig:
        """Settings of the pair that it forms with its own graph."""
        number = [party.own for party in self.peer_settings].index(True)
        return self.peer_configs[number]


def single_party_config(config: PartyConfig) -> MultiPartyConfig:
    """Return the settings of a file with a single data party."""
    return MultiPartyConfig(own=config, peer_configs=(config,))


def load_multi_party_config(path: Path) -> MultiPartyConfig:
    """Read and check a party's file, which at a label party may name several data parties.

    Raises:
        InputError: a key is unknown, missing or wrong; the message names it.
    """
    tables, rows = read_tables_with_list(path, TABLES, DATA_PARTY_TABLE)
    if not rows:
        return single_party_config(load_party_config(path))
    refuse_missing(path, tables)
    if tables["party"].get("role") != "label":
        raise InputError(f"{path}: expected [[{DATA_PARTY_TABLE}]] in the label party's file only")
    for key in ("peer", "listen", "connect"):
        if key in tables["party"]:
            raise InputError(
                f"{path}: expected '{key}' in each [[{DATA_PARTY_TABLE}]], where 'peer' is its "
                f"name, not in [party]"
            )
    peer_settings = checked_parties(path, rows, DataPeerSettings)
    shared = checked_config({k: v for k, v in tables.items() if k in ("privacy", "run")}, path=path)
    peer_configs = tuple(_peer_config(path, tables, shared, party) for party in peer_settings)
    state = peer_configs[0].party.state.parent.parent
    alone = {"state": state, "peer": "all", "listen": None, "connect": None}
    usual = {name: PartySettings.model_fields[name].default for name in ("patience", "when_lost")}
    usual |= {name: tables["party"][name] for name in usual if name in tables["party"]}
    own = peer_configs[0].model_copy(
        update={
            "shared": shared,
            "party": peer_configs[0].party.model_copy(update=alone | usual),
        }
    )
    graph = [_own_graph_config(path, tables, shared, party) for party in peer_settings if party.own]
    return MultiPartyConfig(
        own=own,
        peer_configs=peer_configs,
        peer_settings=peer_settings,
        graph=graph[0] if graph else None,
    )


def load_peer_config(path: Path, peer: str | None) -> PartyConfig:
    """Load the settings of the pair with one of a file's data parties, or with the only one.

    Raises:
        InputError: there are several, and `peer` is None or unknown.
    """
    table = load_multi_party_config(path)
    remote = {pair.party.peer: pair for pair in table.peer_configs if _has_address(pair)}
    if peer is None and len(table.peer_configs) == 1:
        return table.peer_configs[0]
    if peer not in remote:
        raise InputError(
            f"{path}: expected one of {', '.join(remote)} with --with, got {peer or 'nothing'}"
        )
    return remote[peer]


def _has_address(config: PartyConfig) -> bool:
    return config.party.listen is not None or config.party.connect is not None


def _peer_config(
    path: Path, tables: Tables, shared: Config, party: DataPeerSettings
) -> PartyConfig:
    own = dict(tables["party"])
    own["state"] = str(Path(str(own.get("state", "state"))) / "with" / party.name)
    own["peer"] = party.name
    own |= {
        key: value
        for key, value in {
            "listen": party.listen,
            "connect": UNUSED_ADDRESS if party.own else party.connect,
            "patience": party.patience,
            "when_lost": "stop" if party.own or party.when_lost == "go-on" else party.when_lost,
        }.items()
        if value is not None
    }
    return _without_address(
        checked_party_config(path, own, tables, config_for(shared, party)), party
    )


def _own_graph_config(
    path: Path, tables: Tables, shared: Config, party: DataPeerSettings
) -> PartyConfig:
    """Return the settings of the data party of the label party's own graph."""
    settings: dict[str, Any] = dict(tables["party"])
    settings |= {
        "role": "data",
        "name": party.name,
        "peer": tables["party"].get("name"),
        "folder": party.folder,
        "graph": party.graph,
        "state": str(Path(str(settings.get("state", "state"))) / "own"),
        "connect": UNUSED_ADDRESS,
        "when_lost": "stop",
    }
    if party.ledger is not None:
        settings["ledger"] = party.ledger
    return _without_address(
        checked_party_config(path, settings, tables, config_for(shared, party)), party
    )


def _without_address(config: PartyConfig, party: DataPeerSettings) -> PartyConfig:
    if not party.own:
        return config
    nowhere = config.party.model_copy(update={"connect": None})
    return config.model_copy(update={"party": nowhere})
