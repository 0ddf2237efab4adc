"""Results of a run, and the run folder that they are written to."""

import json
import math
import resource
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from vesper.drawing.notebook import in_percent, in_short, notebook_table
from vesper.errors import InputError
from vesper.method.base import NoisePlan
from vesper.method.settings import Config


@dataclass(frozen=True)
class PrivacyFacts:
    """What a run guarantees, provided that its noise comes from the operating system."""

    plan: str
    certified_epsilon: float | None
    claimed_epsilon: float | None
    delta: float | None
    noise_std: float | None
    """Noise standard deviation of the first release or layer."""
    noise_stds: tuple[float, ...]
    probe_noise_std: float | None
    """Noise standard deviation of the probe, before the first release; None: no probe."""
    releases: int
    noise: str
    worth_epsilon: float | None
    """Epsilon that the noise of a claimed plan really certifies, where that is known."""
    unit: str
    """What the epsilon protects: one `edge`, or all edges of one `node`."""
    label_epsilon: float | None
    """Epsilon of each training and validation label against the data party; None: unprotected."""
    simulated: bool = False
    """Whether noise comes from a seed: then nothing is guaranteed, whatever the plan."""

    @property
    def plan_text(self) -> str:
        """The plan for people, marked if its noise was simulated."""
        return plan_text(self.plan, simulated=self.simulated)

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in one line."""
        if self.plan == "edge-free":
            return "no edge is read"
        if self.plan == "certified":
            epsilon, delta = in_short(self.certified_epsilon), in_short(self.delta)
            stated = f"epsilon {epsilon}, delta {delta} for each {self.unit}"
            if self.noise == SIMULATED:
                return f"none, as the noise is simulated; otherwise {stated}"
            return f"certified: {stated}"
        if self.claimed_epsilon is not None and math.isfinite(self.claimed_epsilon):
            return f"none; epsilon {in_short(self.claimed_epsilon)} is claimed"
        return "none"


@dataclass(frozen=True)
class PartyFacts:
    """Guarantee and cost of one of several data parties."""

    name: str
    own: bool
    """Whether it is the label party's own graph, protected from the other parties."""
    privacy: PrivacyFacts
    session: str | None = None
    left: bool = False
    """Whether the run continued without it."""
    spent_epsilon: float | None = None
    """Spent by this run; None where this side does not know it."""


@dataclass(frozen=True)
class StoredResult:
    """Base of the results that are stored as JSON."""

    def as_json(self) -> dict[str, Any]:
        """Return all fields, with None for numbers that JSON does not have."""
        facts: dict[str, Any] = without_non_finite(asdict(self))
        return facts

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        known, privacy = vars(self), getattr(self, "privacy", None)
        seconds = known.get("seconds")
        facts = {
            "method": known.get("method"),
            "metric": known.get("metric"),
            "test": in_percent(known.get("test")),
            "validation": in_percent(known.get("validation")),
            "guarantee": privacy.guarantee if isinstance(privacy, PrivacyFacts) else None,
            "noise": privacy.noise if isinstance(privacy, PrivacyFacts) else None,
            "data": known.get("data") or None,
            "seconds": None if seconds is None else f"{seconds:.1f}",
        }
        return notebook_table(TITLES.get(type(self).__name__, "Result"), facts)


@dataclass(frozen=True)
class DataResult(StoredResult):
    """Result of a two-party run at the data party: what it cost, but not how good it is."""

    method: str
    seconds: float
    peak_memory_bytes: int
    bytes_sent: int
    """Bytes of all messages of the run, over all processes where it was resumed."""
    session: str
    privacy: PrivacyFacts


@dataclass(frozen=True)
class LabelResult(StoredResult):
    """Result of a run between processes at the label party."""

    method: str
    metric: str
    validation: float
    test: float | None
    chosen_stage: int
    stages: list[dict[str, float]]
    seconds: float
    peak_memory_bytes: int
    bytes_sent: int
    session: str
    privacy: PrivacyFacts
    parties: tuple[PartyFacts, ...] = ()
    """The data parties if there are several; `privacy` is that of the least protected one."""


@dataclass(frozen=True, kw_only=True)
class SnapshotCost:
    """Guarantee and cost of one data party's snapshot."""

    name: str
    """Name of its folder, or of the party if there are several."""
    run: str
    """Name of the run that the ledger has for its charges."""
    num_nodes: int
    plan: str
    epsilon: float | None
    """Budget of this graph; None where nothing is certified."""
    delta: float | None
    spent_epsilon: float | None
    releases: int
    simulated: bool
    """Whether noise comes from a seed: then nothing is guaranteed, whatever the plan."""


@dataclass(frozen=True, kw_only=True)
class SnapshotResult(SnapshotCost):
    """How good the model of a simulated run is on a snapshot, and what that cost."""

    num_test: int
    test: float
    parties: tuple[SnapshotCost, ...] = ()
    """The data parties if there are several; other fields are of the least protected one."""


@dataclass(frozen=True)
class Result(StoredResult):
    """Quality and guarantee of a simulated run; `vesper simulate` prints it."""

    method: str
    metric: str
    validation: float
    test: float
    chosen_stage: int
    stages: list[dict[str, float]]
    seconds: float
    peak_memory_bytes: int
    bytes_to_label_party: int
    bytes_to_data_party: int
    privacy: PrivacyFacts
    run: str
    """Name of the run in ledgers."""
    snapshots: tuple[SnapshotResult, ...] = ()
    """Results on graphs that came after training, each with its own budget."""
    parties: tuple[PartyFacts, ...] = ()
    """The data parties if there are several; `privacy` is that of the least protected one."""
    data: str = ""
    """Name of the folder that the data came from, without its path."""


TITLES = {
    "DataResult": "Result at the data party",
    "LabelResult": "Result at the label party",
    "Result": "Result of a simulation",
    "SnapshotResult": "Result on a snapshot",
}
"""What a notebook calls each kind of result."""

SIMULATED = "simulated from the seed: not private"
DRAWN_BY_DATA_PARTY = "drawn by the data party"
"""Where noise comes from, as the label party knows it."""
SECURE = "from the operating system's secure generator"


def draws_noise(noise_plan: NoisePlan) -> bool:
    """Whether a plan adds any noise, which is then secret or simulated."""
    has_noise = any(noise_plan.noise_stds) or noise_plan.certified_epsilon is not None
    return has_noise and noise_plan.plan != "edge-free"


def plan_text(plan: str, *, simulated: bool) -> str:
    """Name a plan for people: nothing simulated is called certified without saying so.

    >>> plan_text("certified", simulated=True), plan_text("certified", simulated=False)
    ('certified (simulated)', 'certified')
    """
    return f"{plan} (simulated)" if simulated else plan


def privacy_facts_of(
    noise_plan: NoisePlan, *, source: str = SIMULATED, label_epsilon: float | None = None
) -> PrivacyFacts:
    """State what a run guarantees, or would guarantee if its noise were not simulated."""
    noisy = any(noise_plan.noise_stds)
    if noise_plan.plan == "edge-free":
        noise = "none needed: no edge is read"
    elif draws_noise(noise_plan):
        noise = source
    else:
        noise = "none: not private"
    return PrivacyFacts(
        plan=noise_plan.plan,
        certified_epsilon=noise_plan.certified_epsilon,
        claimed_epsilon=noise_plan.claimed_epsilon,
        delta=noise_plan.delta,
        noise_std=noise_plan.noise_stds[0] if noisy else None,
        noise_stds=noise_plan.noise_stds,
        probe_noise_std=noise_plan.probe_noise_std if noisy else None,
        releases=len(noise_plan.all_noise_stds)
        if noise_plan.releases is None
        else noise_plan.releases,
        noise=noise,
        worth_epsilon=noise_plan.worth_epsilon,
        unit=noise_plan.unit,
        label_epsilon=label_epsilon,
        simulated=noise == SIMULATED,
    )


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def new_run_name(what: str) -> str:
    """Make the name that a run without a session has in the ledger; it is never used again."""
    return f"{what} {secrets.token_hex(8)}"


def refuse_used_folder(out: Path) -> None:
    """Refuse a run folder that already contains something."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: expected a new or empty folder; choose another with --out")


def write_run(out: Path, config: Config, result: StoredResult, **modules: nn.Module) -> None:
    """Write the run folder: config, result, and each module under its name."""
    (out / "config.json").write_text(config.model_dump_json(indent=2))
    (out / "result.json").write_text(json.dumps(result.as_json(), indent=2))
    for name, module in modules.items():
        weights = {key: value.numpy() for key, value in module.state_dict().items()}
        np.savez(out / f"{name}.npz", allow_pickle=False, **weights)


def without_non_finite(value: Any) -> Any:
    """Replace infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_non_finite(item) for item in value]
    return value
