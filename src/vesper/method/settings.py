"""Settings, in two tables: what changes epsilon, and what cannot.

Anything in here may be shown to the label party: a value computed from edges is never a setting.
"""

import hashlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator


class Settings(BaseModel):
    """Frozen, and strict about unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="strings",
        use_attribute_docstrings=True,  # `vesper init` writes them beside each setting
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """True is not 1: `epsilon = true` is a slip of the pen."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation is not bool:
            raise ValueError("expected a number or a name")
        return value


class PrivacySettings(Settings):
    """What changes epsilon."""

    epsilon: float = Field(default=4.0, gt=0)
    """Budget of everything that leaves the data party; inf for no privacy."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """None: the largest power of ten at most 1 / (10 num_nodes), which is public."""
    hops: int | None = Field(default=None, ge=1, le=3)
    """Releases, or layers of the paper's plan; None lets the method choose from epsilon."""
    first_share: float | None = Field(default=None, gt=0, lt=1)
    """Share of the budget that the first of several hops gets; None for equal shares."""
    accounting: Literal["exact", "as-published", "theorem-1"] = "exact"
    """`as-published` counts as the authors of a baseline did, `theorem-1` as the paper counts for
    them; then nothing is certified."""
    privacy_unit: Literal["edge", "node"] = "edge"
    """Who is protected: one edge, or all edges of one node at once. For `node`, `max_degree` is a
    public promise, and a graph that breaks it is refused."""
    max_degree: int = Field(default=20, ge=1)
    """D of the paper's plan: neighbours sampled a layer. With `privacy_unit = "node"`: the most
    neighbours that any node of any such graph has."""
    min_degree: int = Field(default=5, ge=1)
    """D_min of the paper's truncated GCN, and as which fewer neighbours count under
    `gcn-clamped`."""
    label_epsilon: float | None = Field(default=None, ge=1e-3, le=100)
    """Budget of each label of training and validation nodes against the data party, spent by
    randomised response; None: the data party learns what labels and gradients tell it."""
    clip: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """C of VFGNN: norm to which aggregated embeddings are clipped."""
    aggregator: Literal["gin", "gcn", "gcn-clamped", "mean", "gat", "max"] = "gin"
    """How neighbours weigh: `gin` all alike; `gcn` less the more neighbours they have, as released;
    `gcn-clamped` the same by true degrees of at least `min_degree`; `mean` the sum over the
    released degree; `gat` by bounded attention; `max` the largest of each coordinate."""
    spectral_norm: Literal["estimated", "exact"] = "estimated"
    """Operator norms in the paper's plan: one power iteration, as printed, or singular values."""


METHOD_ALIASES = {
    "vesper": "certified",
    "vesper-paper-gin": "paper-gin",
    "vesper-paper-gcn": "paper-gcn",
}
"""Former names of methods, which are still accepted wherever a method is named."""


def current_name(method: str) -> str:
    """Give the present name of a method."""
    return METHOD_ALIASES.get(method, method)


class RunSettings(Settings):
    """What cannot change epsilon."""

    method: str = "certified"
    """How to learn: `certified`, or a baseline that `vesper simulate --help` lists."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Of weights and batches; noise never comes from it in a real run."""
    width: int = Field(default=128, ge=1)
    """Hidden units."""
    message_width: int = Field(default=16, ge=1)
    """Width of what GAP and ProGAP sum over neighbours."""
    epochs: int = Field(default=60, ge=1)
    """Most epochs a stage; validation may stop it earlier."""
    patience: int = Field(default=8, ge=1)
    """Epochs without a better validation metric before a stage ends."""
    batch_size: int | None = Field(default=None, ge=1)
    """None: an eighth of the training nodes, within 256 and 1024."""
    learning_rate: float = Field(default=0.003, gt=0, allow_inf_nan=False)
    """Of Adam, at both parties."""
    weight_decay: float = Field(default=1e-5, ge=0, allow_inf_nan=False)
    """Pull of weights towards zero."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Share of hidden units left out in a training step."""
    members: int | None = Field(default=None, ge=1, le=32)
    """Networks that learn side by side and are averaged, in `certified` and `mlp`; None: from the
    number of training nodes."""
    encoder: Literal["mlp", "gru", "transformer"] = "mlp"
    """What turns features into encodings; `gru` and `transformer` are for sequences."""
    steps: int | None = Field(default=None, ge=1)
    """Time steps in the features of a sequence encoder: num_features = steps x step width."""
    decoder: Literal["concat", "gru"] = "concat"
    """What the label party puts on top; `gru` belongs to the paper's methods."""
    task: Literal["auto", "classification", "regression", "ranking"] = "auto"
    """What labels are: classes, numbers to predict, or numbers whose order counts. `auto`:
    classes, unless labels have decimals; only a task that is named is known to the data party."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced`: rare classes count more in the loss, scores are calibrated back."""
    degree_share: float | None = Field(default=None, ge=0, le=1)
    """How much of a message is the constant that sums to the degree; None: what a paid trial finds,
    or from public sizes where none is made."""
    wire: Literal["float32", "float16", "int8"] = "float32"
    """How embeddings and gradients cross; with less than float32 they are rounded after noise, by
    chance up or down, so that the mean stays."""
    local_updates: int = Field(default=1, ge=1, le=64)
    """Optimiser steps that each party takes for one exchange (FedBCD); with more of them fewer
    epochs will do."""
    label_messages: bool = True
    """Training nodes send their label instead of a guess; the data party then learns the labels of
    training nodes. Off: it learns of them only what gradients tell."""

    @field_validator("method")
    @classmethod
    def _current_name(cls, method: str) -> str:
        return current_name(method)


LATER_SETTINGS = ("members",)
"""Settings that the first contracts did not have."""


class Config(Settings):
    """All settings of a run, in two tables; equal on both sides, which `contract` proves."""

    privacy: PrivacySettings = PrivacySettings()
    run: RunSettings = RunSettings()

    @property
    def contract(self) -> str:
        """Digest of everything both sides must agree on.

        A setting that came later counts where it is given: the digest of others stays what it was.
        """
        unused = {name for name in LATER_SETTINGS if getattr(self.run, name) is None}
        text = self.model_dump_json(exclude={"run": unused})
        return hashlib.sha256(text.encode()).hexdigest()


def batch_size_of(run: RunSettings, *, num_train: int) -> int:
    """Batch size asked for, or about an eighth of the training nodes, within 256 and 1024.

    Unless asked for, batches of an epoch are even: a last one of a few nodes would be a step in a
    random direction.

    >>> [batch_size_of(RunSettings(), num_train=n) for n in (1_000, 4_000, 9_224, 10**6)]
    [250, 500, 923, 1024]
    """
    if run.batch_size is not None:
        return run.batch_size
    most = min(max(num_train // 8, 256), 1024)
    return -(-num_train // -(-num_train // most))
