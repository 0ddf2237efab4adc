"""Settings in two tables: those that change epsilon, and those that cannot.

Anything in here may be shown to the label party: a value computed from edges is never a setting.
"""

import hashlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from vesper.errors import InputError


class Settings(BaseModel):
    """Base of settings: frozen, and strict about unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="strings",
        use_attribute_docstrings=True,  # `vesper init` writes them above each setting
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans_for_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse `epsilon = true`, which is a mistake and not 1."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation is not bool:
            raise ValueError("expected a number or a name")
        return value


class PrivacySettings(Settings):
    """Settings that change epsilon."""

    epsilon: float = Field(default=4.0, gt=0)
    """Budget for everything that leaves the data party; inf for no privacy."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """If None, the largest power of ten that is at most 1 / (10 num_nodes), which is public."""
    hops: int | None = Field(default=None, ge=1, le=3)
    """Releases, or layers of the paper's plan; if None, the method chooses by epsilon."""
    first_share: float | None = Field(default=None, gt=0, lt=1)
    """Share of the budget for the first of several hops; if None, shares are equal."""
    accounting: Literal["exact", "as-published", "theorem-1"] = "exact"
    """How epsilon is counted: `exact`, `as-published` by the authors of a baseline, or by
    `theorem-1` as in the paper; the last two certify nothing."""
    privacy_unit: Literal["edge", "node"] = "edge"
    """What is protected: one edge, or all edges of one node at once. For `node`, `max_degree` is a
    public promise, and a graph that breaks it is refused."""
    max_degree: int = Field(default=20, ge=1)
    """D of the paper's plan: neighbours sampled per layer. With `privacy_unit = "node"`: the most
    neighbours that any node of any such graph has."""
    min_degree: int = Field(default=5, ge=1)
    """D_min of the paper's truncated GCN; with `gcn-clamped`, smaller degrees count as this."""
    label_epsilon: float | None = Field(default=None, ge=1e-3, le=100)
    """Budget that protects each label of training and validation nodes from the data party, by
    randomised response; if None, the data party learns what shared labels and gradients reveal."""
    clip: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """C of VFGNN: norm to which output embeddings are scaled."""
    aggregator: Literal["gin", "gcn", "gcn-clamped", "mean", "gat", "max"] = "gin"
    """How neighbours are weighted: `gin` all equally; `gcn` less the higher their released degree;
    `gcn-clamped` the same by true degrees of at least `min_degree`; `mean` the sum over the
    released degree; `gat` by bounded attention; `max` the largest of each coordinate."""
    spectral_norm: Literal["estimated", "exact", "none"] = "estimated"
    """Operator norms in the paper's plan: one power iteration, as printed, or singular values.
    `none` leaves weights as they are, so that no epsilon can be claimed; for comparison only."""
    noise_reading: Literal["per-coordinate", "per-vector"] = "per-coordinate"
    """Noise of the paper's plan: its standard deviation in every coordinate, as the paper's theorem
    needs. `per-vector` divides it by sqrt(width); for comparison only, the claimed epsilon is then
    what the theorem says of the smaller noise."""


METHOD_NAMES = (
    "certified",
    "paper-gin",
    "paper-gcn",
    "mlp",
    "gin",
    "gcn",
    "vfgnn",
    "gap",
    "progap",
    "edgerand",
    "lapgraph",
)
"""All methods, in the order of the registry, which takes seconds to import."""

METHOD_ALIASES = {
    "vesper": "certified",
    "vesper-paper-gin": "paper-gin",
    "vesper-paper-gcn": "paper-gcn",
}
"""Former names of methods, which are still accepted everywhere."""


def current_name(method: str) -> str:
    """Return the current name of a method."""
    return METHOD_ALIASES.get(method, method)


def expect_method_name(name: str) -> str:
    """Return the current name of a method.

    Raises:
        InputError: there is no such method.
    """
    name = current_name(name)
    if name not in METHOD_NAMES:
        raise InputError(f"method: expected one of {', '.join(METHOD_NAMES)}, got '{name}'")
    return name


class RunSettings(Settings):
    """Settings that cannot change epsilon."""

    method: str = "certified"
    """Method to train with: `certified`, or a baseline that `vesper simulate --help` lists."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of weights and batches; in a real run noise never comes from it."""
    width: int = Field(default=128, ge=1)
    """Hidden units."""
    message_width: int = Field(default=16, ge=1)
    """Width of what GAP and ProGAP sum over neighbours."""
    epochs: int = Field(default=60, ge=1)
    """Most epochs per stage; validation may stop it earlier."""
    patience: int = Field(default=8, ge=1)
    """Epochs without a better validation metric before a stage ends."""
    batch_size: int | None = Field(default=None, ge=1)
    """Training nodes per batch; if None, an eighth of them, within 256 and 1024."""
    learning_rate: float = Field(default=0.003, gt=0, allow_inf_nan=False)
    """Learning rate of Adam, at both parties."""
    weight_decay: float = Field(default=1e-5, ge=0, allow_inf_nan=False)
    """Weight decay of Adam, at both parties."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Share of hidden units that a training step leaves out."""
    members: int | None = Field(default=None, ge=1, le=32)
    """Networks that are trained side by side and averaged, in `certified` and `mlp`; if None, the
    number of training nodes decides."""
    encoder: Literal["mlp", "gru", "transformer"] = "mlp"
    """Network that turns features into encodings; `gru` and `transformer` are for sequences."""
    steps: int | None = Field(default=None, ge=1)
    """Time steps in the features of a sequence encoder: num_features = steps x step width."""
    decoder: Literal["concat", "gru"] = "concat"
    """Network of the label party; `gru` is for the paper's methods."""
    decoder_inputs: Literal["standardised", "raw"] = "standardised"
    """Embeddings that the decoder of the paper's methods reads: standardised, or as received, which
    is the paper's way."""
    features: Literal["ranked", "raw"] = "ranked"
    """Features that the encoder of the paper's methods reads: standardised and ranked, or as they
    are in the data, which is the paper's way."""
    keep_epoch: Literal["best", "last"] = "best"
    """Epoch whose weights are kept: the best by validation, or the last, which is the paper's way;
    `last` never stops early."""
    task: Literal["auto", "classification", "regression", "ranking"] = "auto"
    """What labels are: classes, numbers to predict, or numbers whose order counts. `auto` means
    classes, unless labels have decimals; the data party only knows the task if it is named."""
    class_weights: Literal["none", "balanced"] = "none"
    """With `balanced`, rare classes count more in the loss, and scores are calibrated back."""
    degree_share: float | None = Field(default=None, ge=0, le=1)
    """Constant part of a message, which sums to the degree; if None, the probe decides, or public
    sizes where there is no probe."""
    wire: Literal["float32", "float16", "int8"] = "float32"
    """Format in which embeddings and gradients cross; below float32 they are rounded after noise,
    randomly up or down, so that the mean stays."""
    local_updates: int = Field(default=1, ge=1, le=64)
    """Optimiser steps that each party takes per exchange (FedBCD); with more of them, fewer epochs
    suffice."""
    label_messages: bool = True
    """Messages of training nodes contain their labels instead of predictions; the data party then
    learns these labels. If off, it learns only what gradients reveal of them."""

    @field_validator("method")
    @classmethod
    def _current_name(cls, method: str) -> str:
        return current_name(method)


LATER_SETTINGS = {
    "privacy": ("noise_reading",),
    "run": ("members", "decoder_inputs", "features", "keep_epoch"),
}
"""Settings that the first contracts did not have yet, by table."""


class Config(Settings):
    """All settings of a run, in two tables; equal on both sides, which `contract` proves."""

    privacy: PrivacySettings = PrivacySettings()
    run: RunSettings = RunSettings()

    @property
    def contract(self) -> str:
        """Digest of everything that both sides must agree on.

        Settings that were added later count only if they are given, so older digests stay valid.
        """
        tables: dict[str, Settings] = {"privacy": self.privacy, "run": self.run}
        unused = {
            table: {
                name
                for name in names
                if getattr(tables[table], name) == type(tables[table]).model_fields[name].default
            }
            for table, names in LATER_SETTINGS.items()
        }
        text = self.model_dump_json(exclude=unused)
        return hashlib.sha256(text.encode()).hexdigest()


def batch_size_of(run: RunSettings, *, num_train: int) -> int:
    """Return the batch size: as set, or about an eighth of the training nodes within 256 and 1024.

    Unless it is set, batches of an epoch are even: a last one of a few nodes would be a step in a
    random direction.

    >>> [batch_size_of(RunSettings(), num_train=n) for n in (1_000, 4_000, 9_224, 10**6)]
    [250, 500, 923, 1024]
    """
    if run.batch_size is not None:
        return run.batch_size
    most = min(max(num_train // 8, 256), 1024)
    return -(-num_train // -(-num_train // most))
