"""Aggregators of the certified plan: what nodes say, what the door makes of it, how it is read.

| aggregator | messages | the door gives | read as | rests on |
| --- | --- | --- | --- | --- |
| `gin` | as they are | sums | they are | R-SUM |
| `gcn` | shortened by released degrees, from hop 2 on | sums | they are | S-GCN-RELEASED |
| `gcn-clamped` | as they are | GCN with clamped true degrees | it is | S-GCN-CLAMP |
| `mean` | as they are | sums | sums over released degrees | R-SUM, POST |
| `gat` | as they are | sums weighed by bounded attention | they are | S-ATT |
| `max` | not below zero | coordinate-wise maxima | they are | S-MAX |

All cost the same noise: the door scales each until one edge moves it by what a sum moves by.

Which decoder the settings ask for: only the paper's methods have a choice.

Which encoder the settings ask for, of all methods that let one choose.
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
"""Every other method has its own and takes the default, `gin`, as not asked for."""

SUM_AGGREGATORS = {"gin", "gcn", "mean"}
"""Aggregators for which the door sums: what is proved of clipped sums holds for them too."""

READS_DEGREES = {"gin", "gcn"}
"""Aggregators for which the first coordinate of what is read is a degree."""

NEEDS_DEGREES = {"gcn", "mean"}


def refuse_aggregator(config: Config) -> None:
    """Refuse an aggregator that the method, or what it protects, does not go with.

    Raises:
        InputError: naming those that do.
    """
    method, aggregator = config.run.method, config.privacy.aggregator
    possible = AGGREGATORS_OF_METHOD.get(method, ("gin",))
    if aggregator not in possible:
        expected = (
            _listed(possible) if method in AGGREGATORS_OF_METHOD else "none, there is no choice,"
        )
        raise InputError(
            f"aggregator: expected {expected} for method '{method}', got '{aggregator}'; leave it "
            f"out, or take method 'certified', which has all"
        )
    if config.privacy.privacy_unit == "node" and aggregator not in SUM_AGGREGATORS:
        raise InputError(
            f"aggregator: expected {_listed(sorted(SUM_AGGREGATORS))} with privacy_unit 'node', "
            f"got '{aggregator}', whose bound is for one edge"
        )


def choose_aggregation(
    aggregator: str, *, min_degree: int, logits: Tensor, centre: Tensor
) -> Aggregation:
    """What the door makes of the messages.

    Args:
        aggregator: its name.
        min_degree: as which fewer neighbours count, under `gcn-clamped`.
        logits: (num_nodes, num_classes) of the model so far: `gat` attends by their posteriors.
        centre: (num_classes,) what counts as the mean posterior.
    """
    if aggregator == "gcn-clamped":
        return GridGcn(min_degree=min_degree)
    if aggregator == "gat":
        keys = attention_keys(logits.softmax(dim=1), centre=centre).numpy()
        return GridAttention(keys=keys, queries=keys)
    return GridMax() if aggregator == "max" else NEIGHBOR_SUM


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return " or ".join(f"'{name}'" for name in names)


def refuse_other_decoder(config: Config) -> None:
    """Refuse a decoder that the method would not use.

    Raises:
        InputError: it is not the only one that the method has.
    """
    if config.run.decoder != "concat":
        raise InputError(
            f"decoder: expected 'concat' for {config.run.method}, got '{config.run.decoder}'; the "
            f"others belong to the paper's methods"
        )


def encoder_shape_of(
    config: Config, sizes: PublicSizes, *, num_inputs: int, normalized: bool = False
) -> EncoderShape:
    """What the encoder has to fit; its masks have a seed of their own."""
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
