"""Attacks on edges of real runs: strong without protection, else as strong as epsilon allows."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import pytest

from vesper.attack.attack_result import AttackResult
from vesper.attack.edges import attack_edges
from vesper.errors import InputError
from vesper.privacy.accounting.gaussian import mu_of

MakeRun = Callable[..., Path]


def run_attack(attack: str, run: Path, folders: Path, pairs: int = 300) -> AttackResult:
    return attack_edges(attack, run, folders, pairs=pairs, seed=1)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_likelihood_reaches_what_epsilon_allows_and_no_more(
    epsilon: float, make_run: MakeRun, folders: Path
) -> None:
    """The best attack on a Gaussian of mu has the area Phi(mu / sqrt 2)."""
    run = make_run(method="certified", epsilon=epsilon, delta=1e-5)
    result = run_attack("edge-likelihood", run, folders, pairs=600)
    best = NormalDist().cdf(mu_of(epsilon=epsilon, delta=1e-5) / math.sqrt(2))
    assert result.roc.ci_low < best
    assert result.roc.ci_high > best - 0.03  # on the grid, norms are a little below 1
    assert result.plan == "certified"
    assert {each.low for each in result.by_degree} >= {4}


@pytest.mark.parametrize("aggregator", ["gcn-clamped", "gat", "max"])
def test_likelihood_reaches_no_more_with_other_aggregators(
    aggregator: str, make_run: MakeRun, folders: Path
) -> None:
    run = make_run(method="certified", epsilon=4.0, delta=1e-5, aggregator=aggregator)
    result = run_attack("edge-likelihood", run, folders, pairs=100)
    best = NormalDist().cdf(mu_of(epsilon=4.0, delta=1e-5) / math.sqrt(2))
    assert result.roc.ci_low < best
    assert result.plan == "certified"


def test_likelihood_without_noise_is_certain(make_run: MakeRun, folders: Path) -> None:
    result = run_attack("edge-likelihood", make_run(epsilon=math.inf), folders)
    assert result.roc.auc == 1.0
    assert result.roc.tpr == 1.0


def test_likelihood_on_rows_of_the_paper(make_run: MakeRun, folders: Path) -> None:
    paper = {"method": "paper-gin", "hops": 1, "epochs": 3}
    weak = run_attack("edge-likelihood", make_run(epsilon=1.0, **paper), folders)
    strong = run_attack("edge-likelihood", make_run(epsilon=64.0, **paper), folders)
    assert strong.roc.auc > weak.roc.auc + 0.2
    assert strong.roc.ci_low > 0.85
    assert weak.roc.ci_low < 0.6
    with pytest.raises(InputError, match="noisy rows of GIN"):
        run_attack("edge-likelihood", make_run(epsilon=math.inf, **paper), folders)


def test_noisy_edges_reveal_as_many_edges_as_they_keep(make_run: MakeRun, folders: Path) -> None:
    result = run_attack("edge-likelihood", make_run(method="edgerand", epsilon=3.0), folders, 600)
    keep = math.exp(3) / (1 + math.exp(3))  # probability that a cell is right, edge or no edge
    assert result.roc.auc == pytest.approx(keep, abs=0.04)


def test_influence_detects_edges_of_a_plain_network_but_not_of_releases(
    make_run: MakeRun, folders: Path
) -> None:
    network = make_run(method="gin", hops=1, dropout=0.0)
    plain = run_attack("edge-influence", network, folders, 40)
    assert plain.roc.auc > 0.95
    private = run_attack("edge-influence", make_run(epsilon=4.0, delta=1e-5), folders, 40)
    assert (private.roc.auc, private.roc.tpr) == (0.5, 0.0)


def test_similarity_detects_communities_without_reading_an_edge(
    make_run: MakeRun, folders: Path
) -> None:
    result = run_attack("edge-similarity", make_run(method="mlp", epochs=30), folders)
    assert 0.5 < result.roc.auc < 0.9  # no edge was read: neighbours are similar


def test_an_attack_repeats(make_run: MakeRun, folders: Path) -> None:
    run = make_run(epsilon=4.0, delta=1e-5)
    first = run_attack("edge-likelihood", run, folders).as_json()
    assert first == run_attack("edge-likelihood", run, folders).as_json()


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, folders: Path) -> None:
    with pytest.raises(InputError, match=r"config.json: expected the settings of a run"):
        run_attack("edge-likelihood", tmp_path, folders)


def test_a_result_that_differs_from_the_repeated_run_is_refused(
    make_run: MakeRun, folders: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(make_run(epsilon=4.0, delta=1e-5), run)
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**result, "validation": 12.5}))
    with pytest.raises(
        InputError, match="use the folder and the version that the run was trained with"
    ):
        run_attack("edge-likelihood", run, folders)


def test_methods_without_a_likelihood_are_refused(make_run: MakeRun, folders: Path) -> None:
    with pytest.raises(InputError, match="try edge-influence"):
        run_attack("edge-likelihood", make_run(method="gcn", epochs=1), folders)
    with pytest.raises(InputError, match="--pairs"):
        run_attack("edge-likelihood", make_run(epsilon=4.0, delta=1e-5), folders, pairs=0)
