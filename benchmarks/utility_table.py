"""The utility table: mean and standard deviation over seeds, and targets."""

import math
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from statistics import fmean

from benchmarks.utility_cells import (
    CROWDED_UP_TO,
    EPSILONS,
    LARGE_SETS,
    NEIGHBORS_IN_CROWDS,
    SAMPLED_ON_LARGE,
    SEEDS,
    WITHOUT_NOISE,
    is_control,
)

from vesper.mechanism.noisy_graph.edgerand import MAX_NOISY_EDGES
from vesper.mechanism.noisy_graph.rare_pairs import MAX_CELLS
from vesper.method.registry import METHODS
from vesper.study.cell import CellResult, Key, Score, needs_no_epsilon, scores_of

LEADS_OVER = ("gap", "progap")
LEAD_AT = (0.5, 1.0, 2.0, 4.0)
LEAD_ON, LEAD = ("fb100_cornell", "fb100_multi8"), 3.0
FRAUD_SET, FRAUD_AUC = "yelpchi_reviews", 76.0
SKETCH_SET, SKETCH = "fb100_cornell", {1.0: 78.8, 4.0: 85.0}


Scores = dict[Key, Score]


def format_score(score: Score) -> str:
    """Format mean and deviation, with the number of seeds if some are missing."""
    return score.text(seeds=len(SEEDS))


def score_at(scores: Scores, dataset: str, method: str, epsilon: float) -> Score | None:
    """Look up a score; the MLP reads no edge, so its only score counts at every epsilon."""
    if math.isinf(epsilon):
        method = WITHOUT_NOISE.get(method, method)
    return scores.get((dataset, method, math.inf if method == "mlp" else epsilon))


def page(lines: Sequence[CellResult], *, command: str, datasets: Sequence[str] = ()) -> str:
    """Return the whole page; it says which of `datasets` have no cell."""
    scores = scores_of(lines)
    plans = {line.method: line.plan for line in lines if line.plan and math.isfinite(line.epsilon)}
    claimed = {method for method, plan in plans.items() if plan == "paper"}
    parts = [
        "# Utility: every method, every epsilon, every public data set",
        "",
        "Test accuracy, or area under the ROC curve for two classes, in percent: mean ± standard "
        f"deviation over {len(SEEDS)} seeds (with the number of seeds, where there are fewer). "
        "Epsilon is *certified* for one edge at the public delta, the largest power of ten at most "
        "1 / (10 nodes), and equal for all methods in a column; methods marked * only claim it, "
        "by the paper's analysis, and do not compete. Bold: the best that compete in a column. "
        "The MLP reads no edge. `certified` sums over neighbours; its five other aggregators are "
        "in [aggregators.md](aggregators.md). Choices are made on validation nodes; "
        "docs/decisions/0005, 0006 and 0016 say where test nodes were seen during development.",
        "",
    ]
    for dataset in dict.fromkeys(line.dataset for line in lines):
        metric = next((one.metric for one in lines if one.dataset == dataset and one.metric), "-")
        parts += [f"## {dataset} ({metric})", "", *table(scores, dataset, claimed), ""]
    parts += ["The methods that are close together, with one scale per data set:", ""]
    parts += ["![metric of contenders](utility-contenders.svg)", "", "All methods:", ""]
    parts += ["![metric against epsilon](utility.svg)", ""]
    parts += ["## Targets", "", *aims(scores), ""]
    if any(score.seeds < len(SEEDS) for key, score in scores.items() if not is_control(*key)):
        parts += [f"Some cells have fewer than {len(SEEDS)} seeds: verdicts are not final.", ""]
    parts += ["## How this page was made", "", *provenance(lines, command, datasets), ""]
    return "\n".join(parts)


def table(scores: Scores, dataset: str, claimed: set[str]) -> Iterator[str]:
    """Table of one data set: one row per method, one column per epsilon."""
    methods = [name for name in METHODS if any(key[:2] == (dataset, name) for key in scores)]
    heads = ["inf" if math.isinf(epsilon) else f"{epsilon:g}" for epsilon in EPSILONS]
    yield f"| epsilon | {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * len(EPSILONS)
    best = {epsilon: best_mean(scores, dataset, epsilon, claimed) for epsilon in EPSILONS}
    for method in methods:
        cells = []
        for epsilon in EPSILONS:
            score = score_at(scores, dataset, method, epsilon)
            competes = method not in claimed or math.isinf(epsilon)
            wins = score is not None and competes and round(score.mean, 1) == best[epsilon]
            text = "" if score is None else format_score(score)
            cells.append(f"**{text}**" if wins else text)
        yield f"| {method}{'*' if method in claimed else ''} | {' | '.join(cells)} |"


def differences_without_noise(lines: Sequence[CellResult]) -> Iterator[str]:
    """Report results at epsilon = inf that differ from the method that they should equal."""
    tests = {line.cell: line.test for line in lines}
    for line in lines:
        equal = WITHOUT_NOISE.get(line.method)
        if equal is None or not math.isinf(line.epsilon):
            continue
        expected = tests.get(replace(line.cell, method=equal))
        if expected is not None and expected != line.test:
            yield f"* {line.cell} gave {line.test:.2f}, {equal} {expected:.2f}."


def best_mean(scores: Scores, dataset: str, epsilon: float, claimed: set[str]) -> float:
    """Best mean among competing methods, rounded as displayed."""
    candidates = [
        score_at(scores, dataset, method, epsilon)
        for method in METHODS
        if method not in claimed or math.isinf(epsilon)
    ]
    return max((round(score.mean, 1) for score in candidates if score), default=math.nan)


def lead(scores: Scores, dataset: str) -> float | None:
    """Mean lead of `certified` over the better of GAP and ProGAP, over epsilon 0.5 to 4."""
    leads = []
    for epsilon in LEAD_AT:
        ours = score_at(scores, dataset, "certified", epsilon)
        others = [score_at(scores, dataset, rival, epsilon) for rival in LEADS_OVER]
        if ours is None or any(other is None for other in others):
            return None
        leads.append(ours.mean - max(other.mean for other in others if other))
    return fmean(leads)


def below_mlp(scores: Scores, dataset: str) -> list[float] | None:
    """Epsilons at which `certified` is below the MLP minus one standard deviation of the MLP."""
    mlp = score_at(scores, dataset, "mlp", math.inf)
    ours = {epsilon: score_at(scores, dataset, "certified", epsilon) for epsilon in EPSILONS}
    if mlp is None or math.isnan(mlp.deviation) or not all(ours.values()):
        return None
    floor = mlp.mean - mlp.deviation
    return [epsilon for epsilon, score in ours.items() if score and score.mean < floor]


def aims(scores: Scores) -> Iterator[str]:
    """Table of targets, values reached and verdicts; `not yet` if cells are missing."""
    datasets = list(dict.fromkeys(key[0] for key in scores))
    leads = {dataset: lead(scores, dataset) for dataset in datasets}
    yield "| target | reached | met |"
    yield "| --- | ---: | --- |"
    for dataset, ahead in leads.items():
        needed = LEAD if dataset in LEAD_ON else None
        yield _row(
            f"{dataset}: lead over the better of GAP and ProGAP, mean over epsilon 0.5 to 4"
            + (f", at least {needed:g}" if needed else ""),
            None if ahead is None else f"{ahead:+.1f}",
            None if ahead is None else "" if needed is None else ahead >= needed,
        )
    known = [ahead for ahead in leads.values() if ahead is not None]
    average = fmean(known) if known and len(known) == len(leads) else None
    yield _row(
        f"the same over all {len(leads)} data sets, above 0",
        None if average is None else f"{average:+.1f}",
        None if average is None else average > 0,
    )
    if known and average is None:
        so_far = fmean(known)
        name = f"the same over the {len(known)} data sets that have all these cells, above 0"
        yield _row(name, f"{so_far:+.1f}", so_far > 0)
    for dataset in datasets:
        below = below_mlp(scores, dataset)
        where = ", ".join(f"{epsilon:g}" for epsilon in below or [])
        yield _row(
            f"{dataset}: never below the MLP minus one standard deviation",
            None if below is None else f"below at {where}" if below else "never",
            None if below is None else not below,
        )
    single = [(FRAUD_SET, 4.0, FRAUD_AUC), *((SKETCH_SET, e, m) for e, m in SKETCH.items())]
    for dataset, epsilon, needed in single:
        score = score_at(scores, dataset, "certified", epsilon)
        yield _row(
            f"{dataset}: at least {needed:g} at epsilon {epsilon:g}",
            None if score is None else format_score(score),
            None if score is None else score.mean >= needed,
        )


def _row(target: str, reached: str | None, met: bool | str | None) -> str:
    word = "not yet" if met is None else met if isinstance(met, str) else "yes" if met else "**no**"
    return f"| {target} | {reached or '-'} | {word} |"


def provenance(lines: Sequence[CellResult], command: str, datasets: Sequence[str]) -> Iterator[str]:
    """Describe how, where and with which versions the page was made, and what is missing."""
    finished = [line for line in lines if line.test is not None]
    hours = sum(line.seconds for line in finished) / 3600
    yield (
        f"`make bench-utility` runs the cells with the code of `vesper simulate`; `{command}` "
        f"wrote this page from {len(finished)} cells ({hours:.1f} hours)."
    )
    yield ""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "numba"))
    yield (
        f"* Machine: {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, {packages}."
    )
    versions = ", ".join(sorted({line.version for line in finished}))
    codes = {line.code for line in finished}
    yield f"* VESPER {versions}" + (
        f"; cells are from {len(codes)} states of its code, which utility.jsonl lists per line."
        if len(codes) > 1
        else f" ({', '.join(codes)})."
    )
    larger = ", ".join(f"{name} = {value}" for name, value in SAMPLED_ON_LARGE.items())
    yield (
        f"* On {' and '.join(LARGE_SETS)} methods that sample neighbourhoods have {larger}, "
        "because they would take too long otherwise (docs/decisions/0006)."
    )
    yield (
        f"* On ieee_cis `edgerand` up to epsilon {CROWDED_UP_TO:g} samples {NEIGHBORS_IN_CROWDS} "
        "neighbours per layer, not 50, for the same reason (docs/decisions/0006)."
    )
    yield (
        f"* Where more than {MAX_CELLS:,} noisy edges would result, `edgerand` drops random edges, "
        f"so that about {MAX_NOISY_EDGES:,} are left (docs/claims/R-EDGERAND.md)."
    )
    yield (
        "* Seconds of cells were measured next to other work, and some include pauses: they are no "
        "measure of speed."
    )
    stopped = [line for line in lines if line.limit is not None]
    for line in stopped:
        yield f"* Stopped after {line.limit:g} s: {line.cell}."
    failed: dict[tuple[str, str | None], list[int]] = {}  # equal except for the seed
    for line in lines:
        if line.failed is not None:
            what = f"{line.dataset}, {line.method}, epsilon {line.epsilon:g}"
            failed.setdefault((what, line.failed), []).append(line.seed)
    for (what, why), seeds in failed.items():
        of = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, sorted(seeds)))}"
        yield f"* Failed: {what}, {of}: {why}."
    measured = {name for line in finished for name in (line.dataset, line.method)}
    for what, names in (("methods", METHODS), ("data sets", datasets)):
        missing = [name for name in names if name not in measured]
        if missing:
            yield f"* Not measured yet, {what}: {', '.join(missing)}."
    yield "* An empty cell was not measured."
    once = [method for method in METHODS if needs_no_epsilon(method)]
    yield f"* Without noise at any epsilon, hence run once per seed: {', '.join(once)}."
    same = ", ".join(f"{method} is {other}" for method, other in WITHOUT_NOISE.items())
    yield f"* Equal bit for bit at epsilon = inf (a test checks it), hence not run twice: {same}."
    yield from differences_without_noise(finished)
