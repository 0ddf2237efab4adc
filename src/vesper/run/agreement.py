"""What follows from the shared settings and public sizes, the same at both parties."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.aggregators import refuse_aggregator
from vesper.method.method import Method, Promise, Sizes
from vesper.method.registry import find_method
from vesper.method.settings import Config, batch_size_of
from vesper.model.objectives import num_outputs
from vesper.run.itinerary import Itinerary
from vesper.run.usable_labels import refuse_unusable_labels


@dataclass(frozen=True)
class Agreement:
    """How the run will go."""

    config: Config
    method: Method
    sizes: Sizes
    itinerary: Itinerary


def agreement_of(config: Config, sizes: Sizes, *, num_val: int, num_test: int) -> Agreement:
    """Find method and itinerary."""
    method = find_method(config.run.method)
    refuse_aggregator(config)
    refuse_other_unit(config, method.promise(config, sizes))
    itinerary = Itinerary(
        stages=method.stages(config, sizes),
        num_train=sizes.num_train,
        num_val=num_val,
        num_test=num_test,
        batch_size=batch_size_of(config.run, num_train=sizes.num_train),
        epochs=config.run.epochs,
        patience=config.run.patience,
        seed=config.run.seed,
    )
    return Agreement(config, method, sizes, itinerary)


def refuse_other_stages(names: Sequence[str], itineraries: Sequence[Itinerary]) -> None:
    """Refuse data parties that would not go through the same stages.

    Raises:
        InputError: they would not; epsilon decides on hops where they are not set.
    """
    stages = {name: each.stages for name, each in zip(names, itineraries, strict=True)}
    if len(set(stages.values())) > 1:
        listed = ", ".join(f"{name} in {count}" for name, count in stages.items())
        raise InputError(
            f"privacy.hops: expected all data parties to train in equally many stages, got {listed}"
            f"; set hops for all of them"
        )


def least_private(promises: Sequence[Promise]) -> Promise:
    """The promise to whoever is protected least: one of several data parties speaks for all.

    One that certifies nothing comes first, then the largest epsilon; one that reads no edge last.
    """

    def exposure(promise: Promise) -> float:
        if promise.plan == "edge-free":
            return -1.0
        epsilon = promise.certified_epsilon
        return math.inf if epsilon is None else epsilon

    return max(promises, key=exposure)


def refuse_other_unit(config: Config, promise: Promise) -> None:
    """Refuse to protect nodes with a method whose guarantee is about edges.

    Raises:
        InputError: `privacy_unit` is not what the method can promise.
    """
    unit = config.privacy.privacy_unit
    if promise.plan in ("certified", "paper") and promise.unit != unit:
        raise InputError(
            f"privacy_unit: expected '{promise.unit}' for {config.run.method}, whose guarantee is "
            f"about one {promise.unit}, got '{unit}'; 'vesper', 'gap' and 'progap' can both"
        )


def agree(config: Config, data: DataHoldings, labels: LabelHoldings) -> Agreement:
    """Agree in one process, where both sides' sizes are at hand."""
    refuse_unusable_labels(config, labels)
    refuse_no_features(data)
    sizes = Sizes(
        num_nodes=data.graph.num_nodes,
        num_train=len(labels.rows("train")),
        num_features=data.features.shape[1],
        num_classes=num_outputs(config.run.task, labels.classes),
    )
    counts = {f"num_{split}": len(labels.rows(split)) for split in SPLITS if split != "train"}
    return agreement_of(config, sizes, **counts)


def refuse_no_features(data: DataHoldings) -> None:
    """Refuse nodes that have nothing but an id."""
    if data.features.shape[1] == 0:
        raise InputError(
            "data/nodes: expected at least one feature column beside 'id', found none; a column "
            "that is 1 everywhere will do"
        )
