"""The utility table as a figure: metric against epsilon, one small chart per data set."""

import math
from collections.abc import Iterable, Sequence

from benchmarks.utility_cells import EPSILONS
from benchmarks.utility_table import Scores, score_at

from vesper.drawing.sheet import Curve, Panel, draw_sheet
from vesper.method.registry import METHODS
from vesper.study.cell import CellResult, needs_no_epsilon, scores_of

CONTENDERS = ("certified", "mlp", "gap", "progap")
"""Methods that are too close to tell apart on a scale for all methods."""


def draw_plot(lines: Sequence[CellResult], methods: Iterable[str] = METHODS) -> str:
    """Draw every data set that has a score; each panel has its own scale."""
    wanted = set(methods)
    scores = scores_of(lines)
    metrics = {line.dataset: line.metric for line in lines if line.test is not None}
    panels = [
        Panel(
            title=f"{dataset} ({metric}, %)",
            curves=[
                _curve(scores, dataset, method)
                for method in METHODS
                if method in wanted and any(key[:2] == (dataset, method) for key in scores)
            ],
        )
        for dataset, metric in metrics.items()
    ]
    title = "Utility of every method"
    return draw_sheet(panels, title=title, steps=EPSILONS, step_name="epsilon", columns=2)


def _curve(scores: Scores, dataset: str, method: str) -> Curve:
    """Curve of a method, in the same colour in every chart; a level if it adds no noise."""
    score_of = {epsilon: score_at(scores, dataset, method, epsilon) for epsilon in EPSILONS}
    is_level = needs_no_epsilon(method)
    return Curve(
        name=method,
        color=list(METHODS).index(method),
        is_level=is_level,
        is_thick=method == "certified",
        points={
            epsilon: (score.mean, score.deviation)
            for epsilon, score in score_of.items()
            if score and (math.isinf(epsilon) or not is_level)
        },
    )
