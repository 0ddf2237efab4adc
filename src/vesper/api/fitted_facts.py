"""Facts and arrays of a fitted model: the trained pair, how good it is, and what is guaranteed."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from vesper.api.fitted import FittedModel
from vesper.api.model_file import DAMAGED, Arrays, Facts
from vesper.api.targets import ClassTargets, NumberTargets, Targets
from vesper.api.trained_model import restored
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.report.budget_section import Charge, RunCharges
from vesper.report.contents import ClassEvaluation, Contents, Evaluation, NumberEvaluation
from vesper.report.privacy import Privacy

if TYPE_CHECKING:
    from vesper.api.encoder import MakeEncoder


def stored_fitted(fitted: FittedModel) -> tuple[Facts, Arrays]:
    """Return facts and arrays that `restored_fitted` needs.

    Raises:
        InputError: predictions of this method read the graph itself.
    """
    contents = fitted.contents
    facts, arrays = fitted.model.stored(is_protected=contents.privacy.is_private)
    evaluation_facts, evaluation_arrays = _stored_evaluation(contents.evaluation)
    targets = fitted.targets
    return {
        **facts,
        "privacy": asdict(contents.privacy),
        "metric_of_targets": targets.metric if isinstance(targets, NumberTargets) else None,
        "evaluation": evaluation_facts,
        "contents": {
            "method": contents.method,
            "metric": contents.metric,
            "validation": contents.validation,
            "chosen_stage": contents.chosen_stage,
            "stages": [dict(stage) for stage in contents.stages],
            "config": contents.config.model_dump_json(),
            "sizes": dict(contents.sizes),
            "seconds": contents.seconds,
        },
    }, {**arrays, "distinct": fitted.distinct, **evaluation_arrays}


def restored_fitted(
    facts: Facts, arrays: Arrays, *, encoder: "MakeEncoder | None", where: str
) -> FittedModel:
    """Make a fitted model from what `stored_fitted` returned; `where` names it in messages.

    Raises:
        InputError: something is missing, or this version cannot use it.
    """
    try:
        stored = facts["contents"]
        metric = facts["metric_of_targets"]
        targets: Targets = ClassTargets() if metric is None else NumberTargets(metric)
        contents = Contents(
            **{key: value for key, value in stored.items() if key not in ("config", "stages")},
            config=Config.model_validate_json(stored["config"]),
            stages=tuple(stored["stages"]),
            test=None,
            privacy=_privacy_from(facts["privacy"]),
            evaluation=_evaluation_from(facts["evaluation"], arrays),
        )
        return FittedModel(
            model=restored(facts, arrays, encoder=encoder),
            targets=targets,
            distinct=arrays["distinct"],
            contents=contents,
        )
    except DAMAGED as error:
        raise InputError(
            f"{where}: expected a model of this version of vesper, saved by version "
            f"{facts.get('version')} ({error}); load it with that version, or fit again"
        ) from None


def _privacy_from(facts: Facts) -> Privacy:
    charges = facts["run_charges"]
    known = None
    if charges is not None:
        listed = tuple(Charge(**charge) for charge in charges["charges"])
        known = RunCharges(**{**charges, "charges": listed})
    return Privacy(**{**facts, "run_charges": known, "noise_stds": tuple(facts["noise_stds"])})


def _stored_evaluation(evaluation: Evaluation | None) -> tuple[Facts | None, Arrays]:
    match evaluation:
        case ClassEvaluation():
            values = {"labels": evaluation.labels, "predicted": evaluation.probabilities}
            facts: dict[str, Any] = {"split": evaluation.split, "classes": evaluation.classes}
        case NumberEvaluation():
            values = {"labels": evaluation.labels, "predicted": evaluation.predicted}
            facts = {"split": evaluation.split, "name": evaluation.name}
        case None:
            return None, {}
    return facts, {f"evaluation/{name}": np.asarray(value) for name, value in values.items()}


def _evaluation_from(facts: Facts | None, arrays: Arrays) -> Evaluation | None:
    if facts is None:
        return None
    labels, predicted = arrays["evaluation/labels"], arrays["evaluation/predicted"]
    if "name" in facts:
        return NumberEvaluation(**facts, labels=labels, predicted=predicted)
    return ClassEvaluation(
        split=facts["split"],
        classes=tuple(facts["classes"]),
        labels=labels,
        probabilities=predicted,
    )
