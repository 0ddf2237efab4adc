"""`vesper degrees`: charging, drawing, and refusals before anything is charged."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.privacy.ledger.ledger_file import default_ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

NAMED = ("--graph", "payments")


def test_degrees_are_charged_and_drawn(terminal: "Terminal", ring: Path) -> None:
    assert terminal.run("degrees", ring, *NAMED, "--epsilon", 5, "--json") == 0
    facts = json.loads(terminal.out)
    assert len(facts["counts"]) == 51
    assert facts["spent_epsilon"] == 5
    assert facts["graph"] == "payments"
    assert abs(facts["counts"][2] - 400) < 20
    assert terminal.run("degrees", ring, *NAMED, "--epsilon", 1) == 0
    assert ">= 50" in terminal.out
    assert "sparse" in terminal.out
    assert f"charged epsilon 1 to graph 'payments' in {default_ledger()}" in terminal.out
    assert terminal.run("budget", "show", default_ledger(), "--json") == 0
    shown = json.loads(terminal.out)["graphs"][0]
    assert (shown["graph"], shown["releases"]) == ("payments", 2)
    assert shown["spent_epsilon"] == shown["spent_pure_epsilon"] == 6
    assert shown["relation"] == "edge"


def test_the_output_has_no_total(terminal: "Terminal", ring: Path, tmp_path: Path) -> None:
    """Whoever is sent the JSON learns what this count has cost, not what was charged before."""
    outputs = []
    for number, earlier in enumerate((0, 2)):
        ledger = ("--ledger", tmp_path / f"{number}.sqlite")
        for _ in range(earlier):
            assert terminal.run("degrees", ring, *NAMED, *ledger, "--epsilon", 1) == 0
        assert terminal.run("degrees", ring, *NAMED, *ledger, "--epsilon", 1, "--json") == 0
        facts = json.loads(terminal.out)
        assert "total_spent_epsilon" not in facts
        noisy = ("counts", "ledger", "mean_degree_at_least", "isolated_share", "advice")
        outputs.append({name: value for name, value in facts.items() if name not in noisy})
    assert outputs[0] == outputs[1]


def test_a_copied_folder_is_charged_to_the_same_ledger_and_name(
    terminal: "Terminal", ring: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(ring / "data", copied)
    for folder in (ring, copied):
        assert terminal.run("degrees", folder, *NAMED, "--epsilon", 1) == 0
        assert "shares" not in terminal.err
    assert terminal.run("budget", "show", default_ledger(), "--json") == 0
    (shown,) = json.loads(terminal.out)["graphs"]
    assert shown["spent_epsilon"] == 2
    assert not list(ring.rglob("*.sqlite")) + list(copied.rglob("*.sqlite"))


def test_the_owner_is_warned_about_a_second_name_for_the_same_edges(
    terminal: "Terminal", ring: Path
) -> None:
    assert terminal.run("degrees", ring, *NAMED) == 0
    assert terminal.run("degrees", ring, "--graph", "december", "--json") == 0
    assert "graph 'december' shares all of its edges with graph 'payments'" in terminal.err
    assert "payments" not in terminal.out
    edges = {"src": range(400), "dst": [(k + 9) % 400 for k in range(400)]}
    pq.write_table(pa.table(edges), ring / "data" / "edges.parquet")
    assert terminal.run("degrees", ring, "--graph", "january") == 0
    assert "shares" not in terminal.err


def test_degrees_fit_on_a_screen(terminal: "Terminal", ring: Path) -> None:
    assert terminal.run("degrees", ring, *NAMED, "--epsilon", 50) == 0
    lines = terminal.out.splitlines()
    assert len(lines) <= 25
    drawn = [line for line in lines if "█" in line or "#" in line]
    assert [line.split()[0] for line in drawn] == ["0", "2"]
    assert drawn[1].split()[1] == "400"
    assert any(line.split()[0] == "10-14" for line in lines)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e9"])
def test_degrees_refuse_before_a_ledger_is_made(
    terminal: "Terminal", ring: Path, epsilon: str
) -> None:
    assert terminal.run("degrees", ring, *NAMED, "--epsilon", epsilon) == 2
    assert "nothing was charged" in terminal.err
    assert not default_ledger().exists()


def test_degrees_as_in_the_paper_cost_twice_the_epsilon(terminal: "Terminal", ring: Path) -> None:
    arguments = ("degrees", ring, *NAMED, "--epsilon", 1, "--as-paper")
    assert terminal.run(*arguments) == 0
    assert "this cost epsilon 2" in terminal.out
    assert terminal.run(*arguments, "--json") == 0
    assert json.loads(terminal.out)["spent_epsilon"] == pytest.approx(2)
    assert terminal.run("budget", "show", default_ledger(), "--json") == 0
    assert json.loads(terminal.out)["graphs"][0]["spent_epsilon"] == pytest.approx(4)
