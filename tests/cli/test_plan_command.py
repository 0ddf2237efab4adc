"""`vesper plan`: both directions, the page, and refusals in terms of the command line."""

import json
from typing import TYPE_CHECKING

import pytest

from vesper.method.base import PublicSizes
from vesper.method.registry import METHODS
from vesper.session.config import load_config

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def test_both_directions(terminal: "Terminal") -> None:
    assert terminal.run("plan", "--epsilon", 1, "--delta", "1e-6", "--hops", 2, "--json") == 0
    facts = json.loads(terminal.out)
    assert 0.999 <= facts["certified"]["epsilon"] <= 1
    assert facts["certified"]["mu"] == pytest.approx(0.2367, rel=1e-3)
    noise = facts["certified"]["noise_std"]
    assert terminal.run("plan", "--noise-std", noise, "--delta", "1e-6", "--hops", 2, "--json") == 0
    assert json.loads(terminal.out)["certified"] == facts["certified"]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_noise_is_the_one_that_training_will_use(epsilon: float, terminal: "Terminal") -> None:
    assert terminal.run("plan", "--epsilon", epsilon, "--hops", 2, "--json") == 0
    planned = json.loads(terminal.out)["certified"]
    config = load_config(None, {"epsilon": epsilon, "delta": 1e-6, "hops": 2})
    sizes = PublicSizes(num_nodes=9, num_train=5, num_features=3, num_classes=2)
    noise_plan = METHODS["certified"].noise_plan(config, sizes)
    assert noise_plan.noise_stds == pytest.approx([planned["noise_std"]] * 2, rel=1e-12)
    assert noise_plan.probe_noise_std == pytest.approx(planned["probe_noise_std"], rel=1e-12)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_page_has_phases_attack_and_claim_and_fits(
    columns: int, terminal: "Terminal", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    sizes = ("--train-nodes", 1000, "--val-nodes", 500, "--nodes", 5000, "--classes", 47)
    assert terminal.run("plan", "--epsilon", 1, "--degrees-epsilon", 0.1, *sizes) == 0
    page = terminal.out
    for phase in ("degree histogram", "training", "validation", "inference"):
        assert phase in page
    assert page.count("free") == 3  # two phases, and the sentence that explains it
    assert "reuse the values" in page
    assert "Certified and claimed, side by side" in page
    assert "with one more release" in page
    assert max(len(line) for line in page.splitlines()) <= columns


def test_without_sizes_the_page_names_the_missing_options(terminal: "Terminal") -> None:
    assert terminal.run("plan", "--epsilon", 1) == 0
    flat = " ".join(terminal.out.split())
    assert "The paper's accountant is omitted" in flat
    assert "give --train-nodes" in flat
    assert "degree histogram" not in flat
    assert "which may make noise up to 5.5% larger" in flat
    assert terminal.run("plan", "--noise-std", 3) == 0
    assert "which may make epsilon larger" in " ".join(terminal.out.split())
    assert terminal.run("plan", "--epsilon", 4, "--train-nodes", 5_000) == 0
    assert "which may make" not in " ".join(terminal.out.split())


@pytest.mark.parametrize("epsilon", [0.25, 1, 4])
def test_noise_is_never_more_than_the_page_states_without_training_nodes(
    epsilon: float, terminal: "Terminal"
) -> None:
    noises = []
    for nodes in (0, 50, 500, 5_000, 50_000, 10**6):
        sizes = ("--train-nodes", nodes) if nodes else ()
        assert terminal.run("plan", "--epsilon", epsilon, *sizes, "--json") == 0
        noises.append(json.loads(terminal.out)["certified"]["noise_std"])
    assert min(noises) == noises[0]
    assert noises[0] * 1.05 < max(noises) <= noises[0] * 1.0551


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "either --epsilon or --noise-std"),
        (("--epsilon", 1, "--noise-std", 2), "either --epsilon or --noise-std"),
        (("--epsilon", 0), "--epsilon: expected a finite number above 0"),
        (("--epsilon", "inf"), "--epsilon: expected a finite number above 0"),
        (("--epsilon", "nan"), "--epsilon: expected a finite number above 0"),
        (("--noise-std", 0), "--noise-std: expected a number from"),
        (("--epsilon", 1, "--delta", 1), "--delta: expected"),
        (("--epsilon", 1, "--degrees-epsilon", -1), "--degrees-epsilon: expected"),
        (("--epsilon", 1, "--degrees-epsilon", 3), "degree histogram: expected"),
        (("--epsilon", 1, "--nodes", 5, "--train-nodes", 10), "--nodes: expected"),
        (("--epsilon", 1e-3, "--delta", 1e-12, "--hops", 20), "larger epsilon or fewer releases"),
    ],
)
def test_refusals_name_options(
    options: tuple[object, ...], message: str, terminal: "Terminal"
) -> None:
    assert terminal.run("plan", *options) == 2
    assert message in terminal.err
    for name in ("NonPrivate", "Budget(", "noise_std_for", "TypeError"):
        assert name not in terminal.err


def test_the_paper_is_reproduced(terminal: "Terminal") -> None:
    assert terminal.run("plan", "--reproduce-paper", "--json") == 0
    rows = json.loads(terminal.out)
    assert len(rows) == 3 * 2 * 6
    assert set(rows[0]) == {
        "dataset",
        "layers",
        "claimed_epsilon",
        "paper_noise_std",
        "certified_noise_std",
        "true_epsilon_lower_bound",
    }
    assert terminal.run("plan", "--reproduce-paper") == 0
    assert "true, at least" in terminal.out


def test_nodes_in_both_accountants(terminal: "Terminal") -> None:
    assert terminal.run("plan", "--epsilon", 4, "--unit", "node", "--max-degree", 20, "--json") == 0
    facts = json.loads(terminal.out)
    assert facts["noise_std"] < facts["renyi_noise_std"]
    assert facts["true_epsilon"] > 3 * facts["epsilon"]
    assert terminal.run("plan", "--epsilon", 4, "--unit", "node", "--max-degree", 20) == 0
    assert "certified, Renyi orders" in terminal.out


@pytest.mark.parametrize(
    "options", [["--epsilon", 4, "--unit", "nodes"], ["--noise-std", 3, "--unit", "node"]]
)
def test_units_that_cannot_be_planned(options: list[object], terminal: "Terminal") -> None:
    assert terminal.run("plan", *options) == 2
    assert "--unit" in terminal.err
