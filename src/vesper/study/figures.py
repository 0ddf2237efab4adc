"""Figures of a study in the paper's style: standard deviations as bands, the MLP as a dashed line.

The part of a series name before a comma is the name of its panel (`GIN-concat, D=20`); series
without a comma, such as the MLP, are in every panel of their data set.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from vesper.drawing.sheet import Curve, Panel, draw_sheet
from vesper.files import replacement_of
from vesper.study.cell import Score
from vesper.study.findings import Findings, title_of
from vesper.study.presets import published_histograms

CERTIFIED = "vesper (certified)"


def write_figures(findings: Findings, folder: Path) -> list[Path]:
    """Write the figures of a study as SVG; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = draw_histograms if findings.has_histograms else draw_curves
    path = folder / f"{findings.study.name}.svg"
    with replacement_of(path) as file:
        file.write(draw(findings).encode())
    return [path]


def draw_curves(findings: Findings) -> str:
    """Draw the metric against epsilon."""
    names = [series for dataset in findings.datasets for series in _drawn(findings, dataset)]
    groups = list(dict.fromkeys(name.partition(", ")[0] for name in names if ", " in name)) or [""]
    curves = list(dict.fromkeys(name.rpartition(", ")[2] for name in names if name != CERTIFIED))
    curves.insert(1, CERTIFIED)  # the same colour in all figures
    panels = [
        Panel(
            title=_title(findings, dataset, group),
            curves=[
                _curve(findings, dataset, series, curves)
                for series in _drawn(findings, dataset)
                if series.partition(", ")[0] == group or ", " not in series
            ],
        )
        for group in groups
        for dataset in findings.datasets
    ]
    steps = sorted({step for dataset in findings.datasets for step in _steps(findings, dataset)})
    return draw_sheet(panels, title=findings.study.grid.title, steps=steps, step_name="epsilon")


def _drawn(findings: Findings, dataset: str) -> list[str]:
    """Curves of a data set; of several configurations only the best."""
    return [
        series
        for series in findings.series_of(dataset)
        if not findings.is_configuration(dataset, series)
    ]


def _title(findings: Findings, dataset: str, group: str) -> str:
    """Title of a panel: data set and source, shortened if the title has a group."""
    title = title_of(findings, dataset)
    return f"{group}: {title.split(', ')[0].rstrip(')')})" if group else title


def _steps(findings: Findings, dataset: str) -> set[float]:
    """Epsilons of all curves that are not levels."""
    return {
        step
        for name, series, step in findings.keys
        if name == dataset and not _is_level(findings, name, series)
    } or {math.inf}


def _is_level(findings: Findings, dataset: str, series: str) -> bool:
    """Whether a series has no noise at all, so that it does not depend on epsilon."""
    return all(math.isinf(e) for d, s, e in findings.keys if (d, s) == (dataset, series))


def _curve(findings: Findings, dataset: str, series: str, names: Sequence[str]) -> Curve:
    short = series.rpartition(", ")[2]
    keys = [key for key in findings.keys if key[:2] == (dataset, series)]
    is_level = _is_level(findings, dataset, series)
    return Curve(
        name=short,
        color=names.index(short),
        is_level=is_level,
        is_thick=series == CERTIFIED,
        points={key[2]: _pair(findings.measured[key]) for key in keys if key in findings.measured},
        published={
            key[2]: _pair(findings.published[key])
            for key in keys
            if key in findings.published and not is_level
        },
    )


def _pair(score: Score) -> tuple[float, float]:
    return score.mean, score.deviation


def draw_histograms(findings: Findings) -> str:
    """Draw the logarithm of counts by degree; published counts are scaled to as many nodes."""
    published = published_histograms()
    panels = []
    for dataset in findings.datasets:
        histograms = [
            (series, counts)
            for series in findings.series_of(dataset)
            if (counts := findings.histogram_of(dataset, series)) is not None
        ]
        if not histograms:
            continue
        (bars_name, first), (name, last) = histograms[0], histograms[-1]
        scale = sum(first) / sum(published.get(dataset, first))
        panels.append(
            Panel(
                title=title_of(findings, dataset),
                bars=_logs(first),
                bars_name=bars_name,
                curves=[
                    Curve(
                        name=name,
                        color=1,
                        points={k: (y, math.nan) for k, y in _logs(last).items()},
                        published={
                            k: (y, math.nan)
                            for k, y in _logs(
                                [scale * count for count in published.get(dataset, ())]
                            ).items()
                        },
                    )
                ],
            )
        )
    return draw_sheet(
        panels,
        title=findings.study.grid.title,
        steps=range(51),
        labels=range(0, 51, 10),
        step_name="degree (50: and more); log10 of nodes",
    )


def _logs(counts: Sequence[float]) -> dict[float, float]:
    """Logarithms of counts of at least one node, by degree."""
    return {float(k): math.log10(count) for k, count in enumerate(counts) if count >= 1}
