"""How good the predictions are, on nodes whose labels this side knows: charts with intervals."""

from html import escape

from vesper.report.charts import numbers_chart, ranks_chart
from vesper.report.classification_charts import (
    MOST_CLASSES,
    confusion_chart,
    precision_recall_chart,
    roc_chart,
)
from vesper.report.contents import ClassEvaluation, Evaluation, NumberEvaluation
from vesper.report.threshold_curves import (
    CurveWithIntervals,
    precision_recall_curve,
    roc_curve,
    share_interval,
)

ON_THE_LINE = {False: "both values are equal", True: "both ranks are equal"}
"""What the dashed line of a scatter chart means; true where ranks are drawn."""


def evaluation_sections(evaluation: Evaluation) -> list[str]:
    """Render the charts of an evaluation, one section each, as HTML."""
    nodes = f"On {len(evaluation.labels):,} {evaluation.split} nodes."
    if evaluation.split == "validation":
        nodes += " They also helped to choose the model, so expect a little less on new nodes."
    if isinstance(evaluation, NumberEvaluation):
        return [_numbers_section(evaluation, nodes)]
    if len(evaluation.labels) == 0:
        return []
    curves = _curve_sections(evaluation, nodes) if _has_curves(evaluation) else []
    return [*curves, _confusion_section(evaluation, nodes)]


def _has_curves(evaluation: ClassEvaluation) -> bool:
    return len(evaluation.classes) == 2 and 0 < int(evaluation.labels.sum()) < len(
        evaluation.labels
    )


def _curve_sections(evaluation: ClassEvaluation, nodes: str) -> list[str]:
    scores, labels = evaluation.scores[:, 1] - evaluation.scores[:, 0], evaluation.labels
    positive = f"The positive class is {evaluation.classes[1]}. {nodes}"
    roc, precision_recall = roc_curve(scores, labels), precision_recall_curve(scores, labels)
    share = float(labels.mean())
    return [
        _section(
            "ROC curve", roc_chart(roc), f"Area under the curve: {_area(roc)}. {BAND} {positive}"
        ),
        _section(
            "Precision and recall",
            precision_recall_chart(precision_recall, share=share),
            f"Average precision: {_area(precision_recall)}; guessing reaches {100 * share:.1f} %. "
            f"{BAND} {positive}",
        ),
    ]


BAND = "The band is the 95 % interval at each point; on the dashed line, scores say nothing."


def _area(curve: CurveWithIntervals) -> str:
    low, high = curve.area_interval
    return f"{100 * curve.area:.1f} % (95 % interval: {100 * low:.1f} to {100 * high:.1f})"


def _confusion_section(evaluation: ClassEvaluation, nodes: str) -> str:
    chart = confusion_chart(evaluation.scores, evaluation.labels, evaluation.classes)
    share = float((evaluation.scores.argmax(axis=1) == evaluation.labels).mean())
    low, high = share_interval(share, len(evaluation.labels))
    more = len(evaluation.classes) - MOST_CLASSES
    note = f"{more} rarer classes are not shown. " if more > 0 else ""
    note = (
        "For each true class (row), the percentage predicted as each class; the most probable "
        f"class is predicted. {note}Right in {100 * share:.1f} % of cases (95 % interval: "
        f"{100 * low:.1f} to {100 * high:.1f}). {nodes}"
    )
    return _section("Confusion matrix", chart, note)


def _numbers_section(evaluation: NumberEvaluation, nodes: str) -> str:
    is_ranking = evaluation.name == "spearman"
    chart = (ranks_chart if is_ranking else numbers_chart)(evaluation.labels, evaluation.predicted)
    name = "Predicted ranks" if is_ranking else "Predicted values"
    note = f"Each point is a node; on the dashed line {ON_THE_LINE[is_ranking]}. {nodes}"
    return _section(name, chart, note)


def _section(name: str, chart: str, note: str) -> str:
    return f'<section><h2>{name}</h2>{chart}<p class="note">{escape(note)}</p></section>'
