"""Data parties of one run, from `[[data_party]]` tables: each has its own graph and budget.

What a party's table leaves out is as in `[privacy]` and `[run]`, which hold for all parties.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, ValidationError

from vesper.errors import InputError
from vesper.method.settings import Config, Settings
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH, graph_name
from vesper.session.config import explain_first_error, keys_of, load_config_and_parties
from vesper.session.party_names import party_name

DATA_PARTY_TABLE = "data_party"

Name = Annotated[str, AfterValidator(party_name)]


class DataPartySettings(Settings):
    """One of several data parties."""

    name: Name
    """Name of the party in results and file names; one word."""
    own: bool = False
    """Whether it is the label party itself, with its own graph."""
    epsilon: float | None = Field(default=None, gt=0)
    """Budget of everything that leaves its graph; None: as in [privacy]."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """Delta of this budget; None: as in [privacy]."""


class SimulatedParty(DataPartySettings):
    """One of several data parties of a simulation."""

    folder: Path | None = None
    """Its nodes and edges, inside the folder of the simulation; None: named like the party."""
    ledger: Path | None = None
    """Its ledger, used by no other party, relative to the file; None: a new one for the run."""
    graph: Annotated[str, AfterValidator(graph_name)] = SIMULATED_GRAPH
    """Name of its graph in the ledger."""

    @property
    def subfolder(self) -> Path:
        """Its folder, relative to the folder of the simulation."""
        return self.folder or Path(self.name)


class OnlyDataParty(SimulatedParty):
    """The data party of a run without `[[data_party]]` tables."""


ONLY_DATA_PARTY = OnlyDataParty(name="data")
"""The same with the default name of its graph."""


def is_only_party(party: SimulatedParty) -> bool:
    """Whether it is the data party of a run without `[[data_party]]` tables."""
    return isinstance(party, OnlyDataParty)


P = TypeVar("P", bound=DataPartySettings)


def load_simulation(
    path: Path | None, overrides: Mapping[str, Any], *, preset: str | None = None
) -> tuple[Config, tuple[SimulatedParty, ...]]:
    """Read and check settings and data parties of a simulation.

    Raises:
        InputError: a key is unknown, missing or wrong; the message names it.
    """
    config, rows = load_config_and_parties(path, overrides, preset=preset)
    parties = checked_parties(path, rows, SimulatedParty)
    return config, tuple(_resolve_paths(path, party) for party in parties) or (ONLY_DATA_PARTY,)


def _resolve_paths(path: Path | None, party: SimulatedParty) -> SimulatedParty:
    """Resolve the ledger relative to the file, not to the working directory."""
    if path is None or party.ledger is None:
        return party
    return party.model_copy(update={"ledger": path.parent / party.ledger})


def checked_parties(
    path: Path | None, rows: Sequence[Mapping[str, Any]], kind: type[P]
) -> tuple[P, ...]:
    """Check the tables, one per party.

    Raises:
        InputError: a key is unknown, missing or wrong, or two parties share a name.
    """
    parties = []
    for number, row in enumerate(rows, start=1):
        try:
            parties.append(kind.model_validate(row))
        except ValidationError as error:
            message = explain_first_error(None, error, keys_of(**{DATA_PARTY_TABLE: kind}))
            raise InputError(f"{path}: [[{DATA_PARTY_TABLE}]] {number}: {message}") from None
    names = Counter(party.name for party in parties)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise InputError(
            f"{path}: expected each [[{DATA_PARTY_TABLE}]] to have a different name, got "
            f"{', '.join(twice)} more than once"
        )
    if sum(party.own for party in parties) > 1:
        raise InputError(f"{path}: expected at most one [[{DATA_PARTY_TABLE}]] with own = true")
    return tuple(parties)


def config_for(config: Config, party: DataPartySettings) -> Config:
    """Return the shared settings of this data party and the label party."""
    budget = {"epsilon": party.epsilon, "delta": party.delta}
    changed = {name: value for name, value in budget.items() if value is not None}
    return config.model_copy(update={"privacy": config.privacy.model_copy(update=changed)})
