"""A grid becomes cells, every combination once, or one clear error."""

import math
from pathlib import Path
from typing import Any

import pytest

from vesper.errors import InputError
from vesper.study.parameter_grid import (
    Grid,
    configurations_of,
    names_of,
    plan_cells,
    read_grid,
)
from vesper.study.sets import DatasetSource

SOURCES = {
    "a": DatasetSource(name="a", num_nodes=10, paper_settings={"width": 7, "max_degree": 3}),
    "b": DatasetSource(name="b", folder=Path("b")),
}


def grid(*blocks: dict[str, Any], **more: Any) -> Grid:
    return Grid.model_validate({"title": "t", "datasets": ["a", "b"], "grid": blocks, **more})


def plan(each: Grid, **more: Any) -> list[Any]:
    return plan_cells(each, SOURCES, **{"seeds": 1, "small": False, **more})


def test_every_combination_is_planned_in_the_order_of_seeds() -> None:
    study = grid({"method": ["certified", "mlp"], "epsilon": [1, 4], "hops": [1, 2]})
    cells = [each.cell for each in plan(study, seeds=2)]
    assert len(cells) == len(set(cells)) == 2 * 2 * (2 * 2 + 2)
    assert [cell.seed for cell in cells] == [0] * 12 + [1] * 12
    assert {cell.series for cell in cells if cell.method == "certified"} == {
        "certified, hops=1",
        "certified, hops=2",
    }
    assert {cell.epsilon for cell in cells if cell.method == "mlp"} == {math.inf}


def test_settings_of_the_block_override_those_of_the_paper() -> None:
    study = grid({"as_paper": True, "datasets": ["a"], "max_degree": 9, "series": "D={max_degree}"})
    (each,) = plan(study)
    assert (each.config.run.width, each.config.privacy.max_degree) == (7, 9)
    assert (each.cell.series, each.cell.epsilon, each.measure) == ("D=9", 4.0, "training")


def test_small_studies_have_some_epsilons_and_infinity() -> None:
    study = grid({"epsilon": [1, 2, 4, math.inf]}, small={"epsilon": [1, 4]})
    assert {each.cell.epsilon for each in plan(study, small=True)} == {1, 4, math.inf}


def test_small_settings_apply_to_as_paper_blocks_and_the_block_overrides_them() -> None:
    block = {"as_paper": True, "datasets": ["a"], "width": 9}
    own = {"method": "gap", "datasets": ["a"]}
    study = grid(block, own, small={"settings": {"epochs": 1, "width": 8}})
    paper, other = plan(study, small=True)
    assert (paper.config.run.epochs, paper.config.run.width) == (1, 9)
    assert other.config.run.epochs > 1
    assert plan(study)[0].config.run.epochs > 1


def test_names_equal_those_of_the_cells() -> None:
    study = grid(
        {"method": ["certified", "mlp"], "epsilon": [4, 1]}, {"series": "x", "datasets": ["a"]}
    )
    names = list(names_of(study, small=False))
    cells = [each.cell for each in plan(study)]
    assert set(names) == {(cell.dataset, cell.series, cell.epsilon) for cell in cells}
    assert names[0] == ("a", "certified", 4.0)


def test_a_grid_survives_json() -> None:
    study = grid({"epsilon": [1, math.inf], "small": 3})
    again = Grid.model_validate_json(study.model_dump_json(exclude_none=True))
    assert list(names_of(again, small=False)) == list(names_of(study, small=False))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"wdith": 3}, "did you mean 'run.width'"),
        ({"method": "magic"}, "expected one of certified"),
        ({"series": "D={max_dgree}", "max_degree": 3}, "names of settings"),
        ({"series": "same", "hops": [1, 2]}, "different settings have the name"),
        ({"as_paper": True}, "there are none for 'b'"),
        ({"epsilon": "much"}, "expected a number for epsilon, got 'much'"),
        ({"epsilon": -1}, "greater than 0"),
    ],
)
def test_mistakes_in_a_block_are_reported(block: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(grid(block))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "not a readable TOML file"),
        ("title = 't'\ndatasets = ['a']\nseeds = 0\n[[grid]]\n", "setting 'seeds'"),
        ("title = 't'\ndatasets = ['a']\n", "'grid' is missing"),
        ("title = 't'\ndatasets = ['a']\nseed = 1\n[[grid]]\n", "did you mean 'seeds'"),
        (
            "title = 't'\ndatasets = ['a']\n[[grid]]\ndatasets = ['c']\n",
            "a block uses c, which is not in",
        ),
    ],
)
def test_mistakes_in_a_file_are_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_grid(path)


def test_small_values_replace_those_of_the_block() -> None:
    block = {"hops": [1, 2, 3], "series": "L={hops}, {width}", "width": 4}
    study = grid(block | {"when_small": {"hops": 1, "width": [8, 16]}})
    small = [each.config for each in plan(study, small=True) if each.cell.dataset == "a"]
    assert [(each.privacy.hops, each.run.width) for each in small] == [(1, 8), (1, 16)]
    assert len(plan(study)) == 2 * 3


def test_blocks_with_one_best_are_configurations_of_one_curve() -> None:
    first = {"best": "GIN", "series": "GIN: L={hops}", "hops": [1, 2], "datasets": ["a"]}
    second = {"best": "GIN", "series": "GIN: L=3", "hops": 3, "epsilon": [4, 8]}
    found = configurations_of(grid(first, second), small=False)
    assert found["a", "GIN", 4.0] == ["GIN: L=1", "GIN: L=2", "GIN: L=3"]
    assert found["a", "GIN", 8.0] == found["b", "GIN", 4.0] == ["GIN: L=3"]
