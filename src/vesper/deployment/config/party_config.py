"""One party's TOML file: who it is, where its files are, how it reaches the peer, what is shared.

| table | what | whose |
| --- | --- | --- |
| `[party]`, `[tls]` | names, folders, addresses, certificates | this party's own, may differ |
| `[privacy]`, `[run]` | the `Config` | shared: both must approve the same, see `contract` |

Paths in the file are relative to the file.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from vesper.engine.choice import EngineName
from vesper.errors import InputError
from vesper.method.settings import Config, PrivacySettings, RunSettings, Settings
from vesper.privacy.ledger.graph_name import graph_name
from vesper.privacy.ledger.ledger_file import default_ledger
from vesper.session.config import (
    Tables,
    checked_config,
    explain_first_error,
    keys_of,
    read_tables_with_list,
)
from vesper.session.party_names import party_name

TABLES = ("party", "tls", "privacy", "run")


class Address(NamedTuple):
    """Address at which one side listens and to which the other connects."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _address(value: Any) -> Any:
    if isinstance(value, Address):
        return value
    host, colon, port = str(value).rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError("expected 'host:port', as in 'bank.example:7101' or '[::1]:7101'")
    return Address(host, int(port))


def expect_address(name: str, value: str) -> None:
    """Refuse a text that is no address.

    Raises:
        InputError: it is none; the message names it.
    """
    try:
        _address(value)
    except ValueError as error:
        raise InputError(f"{name}: {error}, got '{value}'") from None


AddressSetting = Annotated[Address, BeforeValidator(_address)]
NameSetting = Annotated[str, AfterValidator(party_name)]


class PartySettings(Settings):
    """Settings of this party only."""

    role: Literal["data", "label"]
    """Which side this is: `data` holds the graph, `label` holds the labels."""
    name: NameSetting
    """This side's name, as in its certificate."""
    peer: NameSetting
    """The other side's name; a connection from or to anybody else is refused."""
    folder: Path
    """Folder of nodes and edges (data), or of labels (label)."""
    state: Path
    """Folder for the run: approval, journal, checkpoints, results."""
    graph: Annotated[str, AfterValidator(graph_name)] | None = None
    """Data side: name of the graph, such as "payments-2026-11". Its budget belongs to this name and
    covers every version of its edges and nodes that is released under it. The peer never sees it.
    """
    ledger: Path = Field(default_factory=default_ledger)
    """Ledger to which everything is charged before it leaves: releases of the graph at the data
    side, label responses at the label side (with label_epsilon only). One for all runs of all
    graphs; by default one per user."""
    witness: Path | None = None
    """Second note of the ledger's last entry, on storage that is not restored together with this
    machine: it reveals a machine that was set back to an older state."""
    listen: AddressSetting | None = None
    """Wait for the peer at this address; exactly one side listens."""
    connect: AddressSetting | None = None
    """Connect to the peer at this address; the other side listens."""
    patience: float = Field(default=30.0, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds of silence after which the peer counts as gone; the only timeout there is."""
    when_lost: Literal["wait", "stop"] = "wait"
    """What to do then: wait for it to come back, or stop (`--resume` continues later)."""
    engine: EngineName = EngineName.LOCAL
    """Where the data side computes releases: `local`, in its process, or `ray`, on the workers of a
    Ray cluster. Changes no number, so the peer need not know."""
    ray_address: str | None = None
    """With engine `ray`: an existing cluster, host:port or auto; None: one is started here."""

    @model_validator(mode="after")
    def _fits_together(self) -> "PartySettings":
        if self.name == self.peer:
            raise ValueError(f"expected two names, got '{self.name}' as name and as peer")
        if (self.listen is None) == (self.connect is None):
            raise ValueError("expected exactly one of listen and connect")
        if self.engine is EngineName.RAY and self.role == "label":
            raise ValueError("expected engine 'ray' with role 'data' only: that side has releases")
        if self.engine is EngineName.LOCAL and self.ray_address is not None:
            raise ValueError("expected engine 'ray' with ray_address")
        return self


class TlsSettings(Settings):
    """Files that prove who this party is. The key never leaves this machine."""

    certificate: Path
    """This side's certificate, as `vesper cert approve` wrote it."""
    key: Path
    """Its private key, as `vesper cert request` made it; readable by this user only."""
    authority: Path
    """The certificate of the authority that both sides trust."""
    revoked: Path | None = None
    """List of fingerprints, one per line, of certificates that are accepted no longer; it is read
    again at every connection. None: there is no list."""


class PartyConfig(Settings):
    """One party's file, checked; `shared` is what both approve."""

    path: Path
    party: PartySettings
    tls: TlsSettings
    shared: Config


def load_party_config(path: Path) -> PartyConfig:
    """Read and check one party's file.

    Raises:
        InputError: a key is unknown, missing or wrong; the message names it.
    """
    tables, several = read_tables_with_list(path, TABLES, "data_party")
    if several:
        raise InputError(
            f"{path}: expected one data party here, found {len(several)} tables [[data_party]]; "
            f"only `vesper party label`, `contract` and `preflight` accept several"
        )
    refuse_missing(path, tables)
    own = tables.pop("party")
    shared = checked_config({k: v for k, v in tables.items() if k != "tls"}, path=path)
    return checked_party_config(path, own, tables, shared)


def refuse_missing(path: Path, tables: Tables) -> None:
    """Refuse a file that lacks what every party needs."""
    for table in ("party", "tls"):
        if table not in tables:
            raise InputError(
                f"{path}: expected a table [{table}], found none; `vesper init` writes a complete "
                f"file"
            )


def checked_party_config(
    path: Path, own: dict[str, Any], tables: Tables, shared: Config
) -> PartyConfig:
    """Check the settings of one party.

    Args:
        path: path of the file, for messages; relative paths are relative to it.
        own: table [party].
        tables: tables of the file, with [tls].
        shared: settings that both approve.

    Raises:
        InputError: a key is unknown, missing or wrong; the message names it.
    """
    try:
        config = PartyConfig.model_validate(
            {"path": path, "shared": shared, "party": own, "tls": tables["tls"]}
        )
    except ValidationError as error:
        raise InputError(explain_first_error(path, error, KEYS)) from None
    return _resolve_paths(config, path.absolute().parent)


KEYS = keys_of(party=PartySettings, tls=TlsSettings, privacy=PrivacySettings, run=RunSettings)


def _resolve_paths(config: PartyConfig, folder: Path) -> PartyConfig:
    """Make paths absolute; relative ones are relative to the folder of the file."""

    def resolved(settings: Settings) -> dict[str, Path]:
        values = {name: getattr(settings, name) for name in type(settings).model_fields}
        paths = {name: path for name, path in values.items() if isinstance(path, Path)}
        return {name: folder / path.expanduser() for name, path in paths.items()}

    party = config.party.model_copy(update=resolved(config.party))
    tls = config.tls.model_copy(update=resolved(config.tls))
    return config.model_copy(update={"party": party, "tls": tls})
