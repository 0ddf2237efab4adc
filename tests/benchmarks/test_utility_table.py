"""The table summarizes the result lines, checked against numbers computed by hand."""

import math
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from benchmarks.utility_cells import EPSILONS
from benchmarks.utility_plot import draw_plot
from benchmarks.utility_table import aims, below_mlp, format_score, lead, page, table

from vesper.study.cell import CellResult, Score, scores_of

MEANS = {"certified": 80.0, "gap": 70.0, "progap": 75.0}


def line(
    method: str,
    epsilon: float,
    test: float | None,
    *,
    seed: int = 0,
    dataset: str = "fb100_cornell",
    plan: str = "certified",
    limit: float | None = None,
    failed: str | None = None,
) -> CellResult:
    return CellResult(
        dataset=dataset,
        method=method,
        epsilon=epsilon,
        seed=seed,
        settings="s",
        version="1",
        code="c",
        plan=plan,
        metric="accuracy",
        test=test,
        seconds=1.0,
        limit=limit,
        failed=failed,
    )


def many(dataset: str = "fb100_cornell") -> Iterator[CellResult]:
    """Five seeds, each one higher than the last; means are `MEANS` plus log2 epsilon."""
    for seed in range(5):
        yield line("mlp", math.inf, 50.0 + seed, seed=seed, dataset=dataset, plan="edge-free")
        for epsilon in EPSILONS:
            for method, mean in MEANS.items():
                test = mean + math.log2(min(epsilon, 64)) + seed - 2
                yield line(method, epsilon, test, seed=seed, dataset=dataset)


def rows_of(lines: list[CellResult], claimed: set[str] | None = None) -> dict[str, list[str]]:
    rows = [
        row.strip("| ").split(" | ")
        for row in table(scores_of(lines), "fb100_cornell", claimed or set())
    ]
    return {row[0]: [cell.strip() for cell in row[1:]] for row in rows}


def test_mean_and_deviation_over_seeds() -> None:
    score = scores_of(list(many()))["fb100_cornell", "certified", 1.0]
    assert score.mean == pytest.approx(80.0)
    assert score.deviation == pytest.approx(math.sqrt(2.5))
    assert format_score(score) == "80.0 ± 1.6"
    assert format_score(Score(80.04, 0.96, 3)) == "80.0 ± 1.0 (3)"
    assert format_score(Score(80.0, math.nan, 1)) == "80.0 (1)"


def test_rows_are_methods_columns_are_epsilons_and_the_best_is_bold() -> None:
    rows = rows_of(list(many()))
    assert rows["epsilon"] == ["0.25", "0.5", "1", "2", "4", "8", "16", "32", "inf"]
    assert rows["certified"][2] == "**80.0 ± 1.6**"
    assert rows["gap"][2] == "70.0 ± 1.6"
    assert rows["mlp"] == ["52.0 ± 1.6"] * 9  # at every epsilon
    assert list(rows)[2:] == ["certified", "mlp", "gap", "progap"]


def test_claimed_methods_compete_only_without_noise() -> None:
    paper = [line("paper-gin", 1.0, 99.0, plan="paper"), line("gin", math.inf, 99.0)]
    rows = rows_of([*many(), *paper], {"paper-gin"})
    assert rows["paper-gin*"][2] == "99.0 (1)"
    assert rows["certified"][2].startswith("**")
    assert rows["paper-gin*"][8] == "**99.0 (1)**"
    text = page([*many(), *paper], command="c")
    assert "| paper-gin* |" in text


def test_scores_that_are_equal_when_rounded_are_all_bold() -> None:
    rows = rows_of([line("gap", 1.0, 80.04), line("progap", 1.0, 79.96)])
    assert (rows["gap"][2], rows["progap"][2]) == ("**80.0 (1)**", "**80.0 (1)**")


def test_lead_is_over_the_better_method_at_each_epsilon() -> None:
    lines = list(many())
    assert lead(scores_of(lines), "fb100_cornell") == pytest.approx(5.0)
    better = [line("gap", 0.5, 90.0, seed=seed) for seed in range(5)]
    changed = [one for one in lines if (one.method, one.epsilon) != ("gap", 0.5)] + better
    # at 0.5 vesper has 79 and GAP 90; elsewhere 5 ahead
    assert lead(scores_of(changed), "fb100_cornell") == pytest.approx((-11 + 3 * 5) / 4)
    missing = [one for one in lines if (one.method, one.epsilon) != ("progap", 2.0)]
    assert lead(scores_of(missing), "fb100_cornell") is None


def test_epsilons_below_the_mlp_minus_its_deviation_are_found() -> None:
    lines = list(many())
    assert below_mlp(scores_of(lines), "fb100_cornell") == []
    floor = 52.0 - math.sqrt(2.5)
    for low, found in ((floor - 0.01, [0.25]), (floor + 0.01, [])):
        changed = [one for one in lines if (one.method, one.epsilon) != ("certified", 0.25)]
        changed += [line("certified", 0.25, low, seed=seed) for seed in range(5)]
        assert below_mlp(scores_of(changed), "fb100_cornell") == found
    one_seed = [one for one in lines if one.seed == 0]
    assert below_mlp(scores_of(one_seed), "fb100_cornell") is None


def verdicts(lines: list[CellResult]) -> dict[str, str]:
    rows = [[cell.strip() for cell in row.split("|")] for row in aims(scores_of(lines))]
    return {target: met for _, target, _, met, _ in rows[2:]}


def test_every_target_has_a_verdict() -> None:
    found = verdicts([*many(), *many("yelpchi_reviews"), *many("cora")])
    lead_text = "lead over the better of GAP and ProGAP, mean over epsilon 0.5 to 4"
    assert found[f"fb100_cornell: {lead_text}, at least 3"] == "yes"
    assert found[f"cora: {lead_text}"] == ""  # no target of its own
    assert found["the same over all 3 data sets, above 0"] == "yes"
    assert found["cora: never below the MLP minus one standard deviation"] == "yes"
    assert found["yelpchi_reviews: at least 76 at epsilon 4"] == "yes"  # 80 + 2
    assert found["fb100_cornell: at least 78.8 at epsilon 1"] == "yes"
    assert found["fb100_cornell: at least 85 at epsilon 4"] == "**no**"


def test_missing_cells_give_not_yet_rather_than_no() -> None:
    found = verdicts([one for one in many() if one.epsilon >= 4])
    assert found["the same over all 1 data sets, above 0"] == "not yet"
    half = verdicts([*many("cora"), *(one for one in many() if one.epsilon >= 4)])
    assert half["the same over all 2 data sets, above 0"] == "not yet"
    assert half["the same over the 1 data sets that have all these cells, above 0"] == "yes"
    assert found["yelpchi_reviews: at least 76 at epsilon 4"] == "not yet"
    assert found["fb100_cornell: never below the MLP minus one standard deviation"] == "not yet"


def test_the_page_states_its_command_and_what_is_missing() -> None:
    unfinished = [
        line("gap", 8.0, None, seed=9, limit=60.0),
        line("gap", 8.0, None, seed=8, failed="InputError: no"),
        line("gap", 8.0, None, seed=7, failed="InputError: no"),
        line("gap", 16.0, None, seed=7, failed="InputError: no"),
    ]
    text = page(
        [*many(), *unfinished],
        command="python -m benchmarks.utility --table",
        datasets=["fb100_cornell", "cora", "pubmed"],
    )
    assert "`python -m benchmarks.utility --table` wrote this page from 140 cells" in text
    assert "Stopped after 60 s: fb100_cornell, gap, epsilon 8, seed 9." in text
    assert "Failed: fb100_cornell, gap, epsilon 8, seeds 7, 8: InputError: no." in text
    assert "Failed: fb100_cornell, gap, epsilon 16, seed 7: InputError: no." in text
    assert "Not measured yet, data sets: cora, pubmed." in text
    assert "cores" in text
    assert "not final" not in text
    assert "verdicts are not final" in page([*many()][:50], command="c")
    control = line("lapgraph", math.inf, 60.0)  # a control needs one seed only
    assert "not final" not in page([*many(), control], command="c")
    assert "torch " in text


def test_the_picture_is_drawn_with_every_set_and_method() -> None:
    picture = draw_plot([*many(), *many("cora")])
    tree = ElementTree.fromstring(picture)
    texts = {node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert {"cora (accuracy, %)", "certified", "mlp", "∞", "0.25"} <= texts
    dots = tree.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 2 * 3 * 9
    assert draw_plot([]).startswith("<svg")


def test_methods_that_differ_from_their_equal_without_noise_are_named() -> None:
    equal, control = line("gcn", math.inf, 80.0), line("lapgraph", math.inf, 80.0)
    text = page([equal, control], command="c")
    assert "gave" not in text
    text = page([equal, line("edgerand", math.inf, 80.5)], command="c")
    assert "edgerand, epsilon inf, seed 0 gave 80.50, gcn 80.00." in text
