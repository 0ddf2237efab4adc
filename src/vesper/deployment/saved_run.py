"""Saved run: what a finished run leaves at each party so that it can predict.

result/data_run.npz    data party: weights, fitted constants, roster, digest of ids and features
result/label_run.json  label party: public sizes and calibration (weights are in label_party.npz)
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from vesper.deployment.config.party_config import PartyConfig
from vesper.errors import InputError
from vesper.files import read_arrays
from vesper.graph.holdings import DataHoldings
from vesper.method.base import PublicSizes
from vesper.method.settings import Config
from vesper.model.evaluation import Calibration
from vesper.party.inference import trained_arrays
from vesper.party.state import Arrays
from vesper.protocol.messages import Roster
from vesper.session.contract import contract_text, refuse_unapproved
from vesper.session.data_side import DataOutcome

DATA_RUN_FILE, LABEL_RUN_FILE = "data_run.npz", "label_run.json"
ROWS = 1 << 16


@dataclass(frozen=True)
class SavedRun:
    """What both parties know about a finished run."""

    session: str
    plan: str
    config: Config
    """Settings of the training; at the data party with the number of hops that were released."""
    sizes: PublicSizes
    contract: str
    """Approved contract, for the greeting of the peer."""


@dataclass(frozen=True)
class SavedDataRun(SavedRun):
    """Saved run at the data party."""

    roster: Roster
    arrays: Arrays
    nodes: str
    """Digest of ids and features."""
    columns: list[list[Any]]
    """Name and width of each feature column."""


@dataclass(frozen=True)
class SavedLabelRun(SavedRun):
    """Saved run at the label party."""

    stage: int
    calibration: Calibration
    weights: Arrays


def save_data_run(
    out: Path, outcome: DataOutcome, data: DataHoldings, columns: list[list[Any]]
) -> None:
    """Write what the data party needs to answer queries; `columns` are its `feature_columns`."""
    agreed = outcome.run_spec
    facts = {
        "sizes": asdict(agreed.sizes),
        "hops": agreed.noise_plan.hops,
        "columns": columns,
        "nodes": digest_of_nodes(data),
        "train": outcome.roster.train,
        "val": outcome.roster.val,
        "test": outcome.roster.test,
    }
    np.savez(
        out / DATA_RUN_FILE,
        allow_pickle=False,
        facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
        label_posteriors=outcome.roster.label_posteriors,
        **trained_arrays(outcome.data_side),
    )


def save_label_run(out: Path, sizes: PublicSizes, calibration: Calibration) -> None:
    """Write what the label party needs to send queries and to interpret answers."""
    facts = {"sizes": asdict(sizes), "calibration": asdict(calibration)}
    (out / LABEL_RUN_FILE).write_text(json.dumps(facts), encoding="utf-8")


def read_saved_data_run(config: PartyConfig) -> SavedDataRun:
    """Read the saved run at the data party.

    Raises:
        InputError: there is no finished run, or its settings are not the approved ones.
    """
    result, folder = _result_of(config)
    with _readable(folder / DATA_RUN_FILE):
        arrays = read_arrays(folder / DATA_RUN_FILE)
        facts = json.loads(arrays.pop("facts").tobytes())
        ids = {split: tuple(map(str, facts[split])) for split in ("train", "val", "test")}
        roster = Roster(**ids, label_posteriors=arrays.pop("label_posteriors"))
        return SavedDataRun(
            session=result["session"],
            plan=result["privacy"]["plan"],
            config=with_hops(config.shared, hops=facts["hops"]),
            sizes=PublicSizes(**facts["sizes"]),
            contract=contract_text(config.shared),
            roster=roster,
            arrays=arrays,
            nodes=facts["nodes"],
            columns=facts["columns"],
        )


def read_saved_label_run(config: PartyConfig) -> SavedLabelRun:
    """Read the saved run at the label party; raises as `read_saved_data_run` does."""
    result, folder = _result_of(config)
    with _readable(folder / "label_party.npz"):
        weights = read_arrays(folder / "label_party.npz")
    with _readable(folder / LABEL_RUN_FILE):
        facts = json.loads((folder / LABEL_RUN_FILE).read_text(encoding="utf-8"))
        calibration = {name: tuple(values) for name, values in facts["calibration"].items()}
        return SavedLabelRun(
            session=result["session"],
            plan=result["privacy"]["plan"],
            config=config.shared,
            sizes=PublicSizes(**facts["sizes"]),
            contract=contract_text(config.shared),
            stage=int(result["chosen_stage"]),
            calibration=Calibration(**calibration),
            weights=weights,
        )


def digest_of_nodes(data: DataHoldings) -> str:
    """Digest ids and features; no edge is read."""
    digest = blake2b(digest_size=16)
    digest.update(f"{len(data.ids)} {data.features.shape} {data.features.dtype.str}".encode())
    for start in range(0, len(data.ids), ROWS):
        texts = data.ids.values.slice(start, ROWS).cast(pa.large_string()).to_pylist()
        digest.update(json.dumps(texts).encode())
        digest.update(np.ascontiguousarray(data.features[start : start + ROWS]).data)
    return digest.hexdigest()


def with_hops(config: Config, *, hops: int | None) -> Config:
    """Return the settings with the number of hops that were released in training."""
    return config.model_copy(update={"privacy": config.privacy.model_copy(update={"hops": hops})})


def _result_of(config: PartyConfig) -> tuple[dict[str, Any], Path]:
    state = config.party.state
    refuse_unapproved(state, config.shared)
    folder = state / "result"
    if not folder.is_dir():
        raise InputError(
            f"{state}: expected a finished run, found none; train first with "
            f"`vesper party {config.party.role}`"
        )
    with _readable(folder / "result.json"):
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        trained = Config.model_validate_json((folder / "config.json").read_bytes())
    if contract_text(trained) != contract_text(config.shared):
        raise InputError(
            f"{config.path}: [privacy] or [run] have changed since training; restore the values in "
            f"{folder / 'config.json'}, and approve them again"
        )
    return result, folder


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Report every problem with a file of the run with the name of the file."""
    if not path.is_file():
        raise InputError(
            f"{path}: expected this file next to the others of the run, found none; runs of an "
            f"older version cannot predict: train again"
        )
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        raise InputError(f"{path}: cannot be read ({error}); restore it, or train again") from None
