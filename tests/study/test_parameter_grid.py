"""A declaration becomes cells: every combination, each once, or one clear error."""

import math
from pathlib import Path
from typing import Any

import pytest

from vesper.errors import InputError
from vesper.study.parameter_grid import Grid, names_of, plan_cells, read_grid
from vesper.study.sets import DatasetSource

SOURCES = {
    "a": DatasetSource(name="a", num_nodes=10, paper_settings={"width": 7, "max_degree": 3}),
    "b": DatasetSource(name="b", folder=Path("b")),
}


def grid(*blocks: dict[str, Any], **more: Any) -> Grid:
    return Grid.model_validate({"title": "t", "datasets": ["a", "b"], "grid": blocks, **more})


def planned(found: Grid, **more: Any) -> list[Any]:
    return plan_cells(found, SOURCES, **{"seeds": 1, "small": False, **more})


def test_every_combination_the_first_seed_of_everything_first() -> None:
    found = grid({"method": ["certified", "mlp"], "epsilon": [1, 4], "hops": [1, 2]})
    cells = [each.cell for each in planned(found, seeds=2)]
    assert len(cells) == len(set(cells)) == 2 * 2 * (2 * 2 + 2)
    assert [cell.seed for cell in cells] == [0] * 12 + [1] * 12
    assert {cell.series for cell in cells if cell.method == "certified"} == {
        "certified, hops=1",
        "certified, hops=2",
    }
    assert {cell.epsilon for cell in cells if cell.method == "mlp"} == {math.inf}


def test_settings_are_those_of_the_paper_and_then_of_the_block() -> None:
    found = grid({"as_paper": True, "datasets": ["a"], "max_degree": 9, "series": "D={max_degree}"})
    (each,) = planned(found)
    assert (each.config.run.width, each.config.privacy.max_degree) == (7, 9)
    assert (each.cell.series, each.cell.epsilon, each.measure) == ("D=9", 4.0, "training")


def test_small_keeps_some_epsilons_and_infinity() -> None:
    found = grid({"epsilon": [1, 2, 4, math.inf]}, small={"epsilon": [1, 4]})
    assert {each.cell.epsilon for each in planned(found, small=True)} == {1, 4, math.inf}


def test_small_settings_are_for_what_the_paper_runs_and_the_block_wins() -> None:
    block = {"as_paper": True, "datasets": ["a"], "width": 9}
    own = {"method": "gap", "datasets": ["a"]}
    found = grid(block, own, small={"settings": {"epochs": 1, "width": 8}})
    paper, other = planned(found, small=True)
    assert (paper.config.run.epochs, paper.config.run.width) == (1, 9)
    assert other.config.run.epochs > 1
    assert planned(found)[0].config.run.epochs > 1


def test_names_are_those_of_the_cells() -> None:
    found = grid(
        {"method": ["certified", "mlp"], "epsilon": [4, 1]}, {"series": "x", "datasets": ["a"]}
    )
    names = list(names_of(found, small=False))
    cells = [each.cell for each in planned(found)]
    assert set(names) == {(cell.dataset, cell.series, cell.epsilon) for cell in cells}
    assert names[0] == ("a", "certified", 4.0)


def test_a_grid_survives_json() -> None:
    found = grid({"epsilon": [1, math.inf], "small": 3})
    again = Grid.model_validate_json(found.model_dump_json(exclude_none=True))
    assert list(names_of(again, small=False)) == list(names_of(found, small=False))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"wdith": 3}, "did you mean 'run.width'"),
        ({"method": "magic"}, "expected one of certified"),
        ({"series": "D={max_dgree}", "max_degree": 3}, "names of settings"),
        ({"series": "same", "hops": [1, 2]}, "different settings have the name"),
        ({"as_paper": True}, "which 'b' has not"),
        ({"epsilon": "much"}, "expected a number for epsilon, got 'much'"),
        ({"epsilon": -1}, "greater than 0"),
    ],
)
def test_mistakes_in_a_block_are_named(block: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        planned(grid(block))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "not a readable TOML file"),
        ("title = 't'\ndatasets = ['a']\nseeds = 0\n[[grid]]\n", "setting 'seeds'"),
        ("title = 't'\ndatasets = ['a']\n", "'grid' is missing"),
        ("title = 't'\ndatasets = ['a']\nseed = 1\n[[grid]]\n", "did you mean 'seeds'"),
        ("title = 't'\ndatasets = ['a']\n[[grid]]\ndatasets = ['c']\n", "a block asks for c"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "g.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_grid(path)
