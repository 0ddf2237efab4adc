"""Every preset can be planned, and names of published scores match its cells."""

import math

import pytest

from vesper.errors import InputError
from vesper.study.parameter_grid import configurations_of, names_of, plan_cells
from vesper.study.presets import HISTOGRAMS, NAMES, find_grid, published_scores
from vesper.study.sets import find_sources


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_can_be_planned(name: str) -> None:
    grid = find_grid(name)[1]
    for small in (True, False):
        sources = find_sources(grid.datasets, data=None, small=small)
        planned = plan_cells(grid, sources, seeds=1, small=small)
        assert len(planned) == len(set(names_of(grid, small=small)))
        for each in planned:
            privacy = each.config.privacy
            if each.cell.method == "paper-gcn":  # it refuses anything else
                assert privacy.min_degree <= privacy.max_degree, each.cell.series
    assert any(each.cell.series == "vesper (certified)" for each in planned)


@pytest.mark.parametrize("name", [name for name in NAMES if name != HISTOGRAMS])
def test_every_published_score_has_a_cell(name: str) -> None:
    grid = find_grid(name)[1]
    cells = {*names_of(grid, small=False), *configurations_of(grid, small=False)}
    assert set(published_scores(name)) - cells == set()


@pytest.mark.parametrize("name", ["table-1", "table-full", "trade-off"])
def test_the_configuration_of_a_published_score_is_one_that_we_run(name: str) -> None:
    configurations = configurations_of(find_grid(name)[1], small=False)
    known = 0
    for key, score in published_scores(name).items():
        words = set(score.configuration.replace(" or 50", "").split())
        if words and key in configurations:
            series = [set(each.partition(": ")[2].split()) for each in configurations[key]]
            decoder = {"concat", "gru"} if name == "table-full" else set()
            assert any(words - decoder <= each for each in series), (key, score)
            known += 1
    assert known >= 24


def test_methods_of_the_paper_are_run_with_its_settings() -> None:
    grid = find_grid("table-1")[1]
    sources = find_sources(grid.datasets, data=None, small=False)
    configs = {
        (each.cell.dataset, each.cell.series): each.config
        for each in plan_cells(grid, sources, seeds=1, small=False)
    }
    paper = configs["finance", "VESPER(GCN): gru D=10 D_min=3"]
    assert (paper.run.width, paper.run.epochs, paper.privacy.max_degree) == (256, 2, 10)
    assert (paper.run.decoder, paper.privacy.min_degree) == ("gru", 3)
    assert (paper.run.batch_size, paper.privacy.delta) == (32, 1 / 2_447_370)
    gap = configs["reddit", "GAP"]
    assert (gap.privacy.accounting, gap.privacy.hops) == ("theorem-1", 2)
    assert (gap.run.epochs, gap.run.message_width) == (5, 512)
    assert configs["reddit", "VFGNN"].privacy.hops == 1
    mlp = configs["reddit", "MLP (as in the paper)"]
    assert (mlp.run.members, mlp.run.epochs, mlp.run.width) == (1, 5, 512)
    assert configs["reddit", "MLP"].privacy.epsilon == math.inf


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown study 'tabel-1'; did you mean 'table-1'"):
        find_grid("tabel-1")
    with pytest.raises(InputError, match="expected a TOML file, got 'No such file"):
        find_grid("missing.toml")


def test_layers_are_studied_for_every_method_that_has_them() -> None:
    names = set(names_of(find_grid("layers")[1], small=True))
    for method in ("GIN", "GCN", "VFGNN", "GAP"):
        assert {("finance", f"{method}, L={hops}", 4.0) for hops in (1, 2, 3)} <= names
