"""Run spec: what follows from shared settings and public sizes, equal at both parties.

Labels that no model can be trained on or selected by are refused before a run begins.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.base import Method, NoisePlan, PublicSizes
from vesper.method.options import refuse_aggregator
from vesper.method.registry import find_method
from vesper.method.settings import Config, batch_size_of
from vesper.model.noisy_labels import refuse_other_tasks
from vesper.model.objective_factory import num_outputs, task_of
from vesper.session.loop import TrainingSchedule


def refuse_unusable_labels(config: Config, labels: LabelHoldings) -> None:
    """Refuse labels that no model can be trained on or selected by."""
    for split in ("train", "val"):
        if not len(labels.rows(split)):
            remedy = {
                "train": "a model learns from these",
                "val": "a fifth of the training rows will do",
            }
            raise InputError(
                f"{labels.path}, column split: expected some rows with '{split}', found none; "
                f"{remedy[split]}"
            )
    if config.privacy.label_epsilon is None:
        if len(np.unique(labels.labels[labels.rows("train")])) < 2:
            raise InputError(
                f"{labels.path}, column label: expected at least two different labels among rows "
                f"with split 'train', found one; there is nothing to learn from them"
            )
        refuse_third_class(config, labels)
        refuse_equal_labels(config, labels, "val")
    else:  # whether a run begins is visible, so only responses decide it (`label_responses`)
        task = task_of(config.run.task, labels.classes)
        refuse_other_tasks(task, balanced=config.run.class_weights == "balanced")


def refuse_third_class(config: Config, labels: LabelHoldings) -> None:
    """Refuse test labels that would turn two classes into more.

    Metric and number of hops differ between two and more classes: test rows would decide on the
    model.
    """
    if task_of(config.run.task, labels.classes) != "classification":
        return
    is_test = labels.splits == SPLITS.index("test")
    known = np.unique(labels.labels[~is_test])
    strange = is_test & ~np.isin(labels.labels, known)
    if len(known) == 2 and strange.any():
        rows = np.flatnonzero(strange)
        named = first_three(
            f"'{labels.classes[labels.labels[row]]}' of id {id_}"
            for row, id_ in zip(rows[:3], labels.ids.take(rows[:3]), strict=True)
        )
        raise InputError(
            f"{labels.path}, column label: expected the two classes of rows with split 'train' and "
            f"'val', found {len(rows)} rows with split 'test' and another label ({named}); leave "
            f"these rows out"
        )


def refuse_equal_labels(
    config: Config,
    labels: LabelHoldings,
    split: str,
    *,
    seen: NDArray[np.int64] | None = None,
) -> None:
    """Refuse a split whose labels are all equal, where the metric needs at least two.

    Args:
        config: has the task.
        labels: the label table.
        split: name of the split.
        seen: responses that take the place of the split's labels; None: the labels themselves.

    Raises:
        InputError: all labels of the split are equal, and the metric would not be a number.
    """
    has_accuracy = num_outputs(config.run.task, labels.classes) != 2 and (
        task_of(config.run.task, labels.classes) == "classification"
    )
    what, remedy = "labels", "no metric can be computed on them"
    if seen is None:
        seen = labels.labels[labels.rows(split)]
    else:
        what = "responses under label_epsilon"
        remedy += ": take more such rows, or a larger label_epsilon"
    if len(labels.classes) < 2 or (not has_accuracy and len(np.unique(seen)) < 2):
        raise InputError(
            f"{labels.path}, column label: expected at least two different {what} among the "
            f"{len(seen)} rows with split '{split}', found one; {remedy}"
        )


@dataclass(frozen=True)
class RunSpec:
    """Shared settings of a run and everything that follows from them."""

    config: Config
    method: Method
    sizes: PublicSizes
    schedule: TrainingSchedule
    noise_plan: NoisePlan

    def planned_for(self, config: Config) -> "RunSpec":
        """Return the same run with a noise plan for the budget in `config`."""
        noise_plan = self.method.noise_plan(config, self.sizes)
        return replace(self, config=config, noise_plan=noise_plan)


def make_run_spec(config: Config, sizes: PublicSizes, *, num_val: int, num_test: int) -> RunSpec:
    """Derive method, noise plan and training schedule from settings and sizes."""
    method = find_method(config.run.method)
    refuse_aggregator(config)
    noise_plan = method.noise_plan(config, sizes)
    refuse_other_unit(config, noise_plan)
    schedule = TrainingSchedule(
        stages=method.stages(config, sizes),
        num_train=sizes.num_train,
        num_val=num_val,
        num_test=num_test,
        batch_size=batch_size_of(config.run, num_train=sizes.num_train),
        epochs=config.run.epochs,
        patience=config.run.patience,
        seed=config.run.seed,
    )
    return RunSpec(config, method, sizes, schedule, noise_plan)


def refuse_other_stages(names: Sequence[str], schedules: Sequence[TrainingSchedule]) -> None:
    """Refuse data parties that would not train in the same number of stages.

    Raises:
        InputError: the numbers differ; epsilon decides on hops where they are not set.
    """
    stages = {name: each.stages for name, each in zip(names, schedules, strict=True)}
    if len(set(stages.values())) > 1:
        listed = ", ".join(f"{name} in {count}" for name, count in stages.items())
        raise InputError(
            f"privacy.hops: expected all data parties to train in the same number of stages, got "
            f"{listed}; set hops for all of them"
        )


def least_private(noise_plans: Sequence[NoisePlan]) -> NoisePlan:
    """Return the noise plan of the least protected data party, which stands for all of them.

    A plan that certifies nothing comes first, then the largest epsilon; one that reads no edge
    comes last.
    """

    def exposure(noise_plan: NoisePlan) -> float:
        if noise_plan.plan == "edge-free":
            return -1.0
        epsilon = noise_plan.certified_epsilon
        return math.inf if epsilon is None else epsilon

    return max(noise_plans, key=exposure)


def refuse_other_unit(config: Config, noise_plan: NoisePlan) -> None:
    """Refuse to protect nodes with a method whose guarantee is about edges.

    Raises:
        InputError: the method cannot guarantee `privacy_unit`.
    """
    unit = config.privacy.privacy_unit
    if noise_plan.plan in ("certified", "paper") and noise_plan.unit != unit:
        raise InputError(
            f"privacy_unit: expected '{noise_plan.unit}' for {config.run.method}, whose guarantee "
            f"is about one {noise_plan.unit}, got '{unit}'; 'certified', 'gap' and 'progap' "
            f"support both"
        )


def run_spec_for(config: Config, data: DataHoldings, labels: LabelHoldings) -> RunSpec:
    """Derive the run spec in one process, where the sizes of both sides are known."""
    refuse_unusable_labels(config, labels)
    refuse_no_features(data)
    sizes = PublicSizes(
        num_nodes=data.graph.num_nodes,
        num_train=len(labels.rows("train")),
        num_features=data.features.shape[1],
        num_classes=num_outputs(config.run.task, labels.classes),
    )
    counts = {f"num_{split}": len(labels.rows(split)) for split in SPLITS if split != "train"}
    return make_run_spec(config, sizes, **counts)


def refuse_no_features(data: DataHoldings) -> None:
    """Refuse nodes that have nothing but an id."""
    if data.features.shape[1] == 0:
        raise InputError(
            "data/nodes: expected at least one feature column in addition to 'id', found none; a "
            "column that is 1 everywhere will do"
        )
