"""Options of methods: aggregators of the certified plan, decoders and encoders.

| aggregator | messages | the door returns | read as | claim |
| --- | --- | --- | --- | --- |
| `gin` | unchanged | sums | unchanged | R-SUM |
| `gcn` | shortened by released degrees, from hop 2 on | sums | unchanged | S-GCN-RELEASED |
| `gcn-clamped` | unchanged | GCN with clamped true degrees | unchanged | S-GCN-CLAMP |
| `mean` | unchanged | sums | sums over released degrees | R-SUM, POST |
| `gat` | unchanged | sums weighted by bounded attention | unchanged | S-ATT |
| `max` | not below zero | coordinate-wise maxima | unchanged | S-MAX |

The door scales each so that one edge moves it as far as a sum, so a release with the same noise
costs the same. (The probe takes more of the budget for sums, so their hops have a little more noise
at the same epsilon.) Only the paper's methods have a choice of decoder.
"""

from torch import Tensor

from vesper.errors import InputError
from vesper.mechanism.aggregations import Aggregation, GridAttention, GridGcn, GridMax
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.method.base import PublicSizes
from vesper.method.settings import Config
from vesper.model.encoders import EncoderShape
from vesper.model.message_rows import attention_keys

AGGREGATORS_OF_METHOD: dict[str, tuple[str, ...]] = {
    "certified": ("gin", "gcn", "gcn-clamped", "mean", "gat", "max"),
    "vfgnn": ("gin", "gcn"),
}
"""Every other method has its own, and reads the default, `gin`, as not set."""

SUM_AGGREGATORS = {"gin", "gcn", "mean"}
"""Aggregators for which the door sums: what is proved for clipped sums holds for them too."""

MOVES_OTHERS = {"gcn-clamped"}
"""Aggregators for which one edge also moves rows of other nodes than its endpoints."""

READS_DEGREES = {"gin", "gcn"}
"""Aggregators for which the first coordinate of a hop, as it is read, is a degree."""

NEEDS_DEGREES = {"gcn", "mean"}


def refuse_aggregator(config: Config) -> None:
    """Refuse an aggregator that the method or the privacy unit does not support.

    Raises:
        InputError: lists those that are supported.
    """
    method, aggregator = config.run.method, config.privacy.aggregator
    possible = AGGREGATORS_OF_METHOD.get(method, ("gin",))
    if aggregator not in possible:
        expected = _listed(possible) if method in AGGREGATORS_OF_METHOD else "only the built-in one"
        raise InputError(
            f"aggregator: expected {expected} for method '{method}', got '{aggregator}'; leave it "
            f"out, or use method 'certified', which supports all"
        )
    if config.privacy.privacy_unit == "node" and aggregator not in SUM_AGGREGATORS:
        raise InputError(
            f"aggregator: expected {_listed(sorted(SUM_AGGREGATORS))} with privacy_unit 'node', "
            f"got '{aggregator}', whose bound holds for one edge"
        )


def choose_aggregation(
    aggregator: str, *, min_degree: int, logits: Tensor, centre: Tensor
) -> Aggregation:
    """Choose the aggregation that the door applies to messages.

    Args:
        aggregator: name of the aggregator.
        min_degree: with `gcn-clamped`, smaller degrees count as this.
        logits: (num_nodes, num_classes) of the model so far; `gat` attends by their posteriors.
        centre: (num_classes,) mean posterior.
    """
    if aggregator == "gcn-clamped":
        return GridGcn(min_degree=min_degree)
    if aggregator == "gat":
        keys = attention_keys(logits.softmax(dim=1), centre=centre).numpy()
        return GridAttention(keys=keys, queries=keys)
    if aggregator == "max":
        return GridMax()
    if aggregator in SUM_AGGREGATORS:
        return NEIGHBOR_SUM
    raise InputError(f"aggregator: no aggregation has the name '{aggregator}'")


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return " or ".join(f"'{name}'" for name in names)


def refuse_other_decoder(config: Config) -> None:
    """Refuse a decoder setting that the method would ignore.

    Raises:
        InputError: the decoder is not the only one that the method has.
    """
    if config.run.decoder != "concat":
        raise InputError(
            f"decoder: expected 'concat' for {config.run.method}, got '{config.run.decoder}'; the "
            f"others are for the paper's methods"
        )


def encoder_shape_of(
    config: Config, sizes: PublicSizes, *, num_inputs: int, normalized: bool = False
) -> EncoderShape:
    """Return what the encoder has to fit; its masks have their own seed."""
    run = config.run
    return EncoderShape(
        num_inputs=num_inputs,
        num_features=sizes.num_features,
        steps=run.steps,
        width=run.width,
        dropout=run.dropout,
        seed=run.seed + 2,
        normalized=normalized,
    )
