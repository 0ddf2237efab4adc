"""Whatever is ours rather than the paper's is named, until it is switched to the paper's way."""

from typing import Any

from vesper.study.findings import Findings
from vesper.study.folder import Study
from vesper.study.notes import OURS, notes_of
from vesper.study.parameter_grid import Grid
from vesper.study.presets import published_scores


def notes(name: str = "mine", **settings: Any) -> str:
    block = {"method": "paper-gin", "as_paper": True, **settings}
    grid = Grid.model_validate({"title": "t", "datasets": ["reddit"], "grid": [block]})
    study = Study(name=name, small=True, grid=grid, seeds=2, sources={})
    return "\n".join(notes_of(Findings(study, (), (), {}, published_scores(name), {})))


def test_what_is_ours_is_named_with_its_setting() -> None:
    text = notes()
    assert all(f"({key})" in text for key in OURS)


def test_settings_at_the_papers_way_are_not_named() -> None:
    text = notes(decoder_inputs="raw", keep_epoch="last")
    assert "(decoder_inputs)" not in text
    assert "(features)" in text
    every = {key: value for key, (value, _) in OURS.items()}
    assert "Ours rather than the paper's" not in notes(**every)


def test_our_mlp_is_named_and_the_papers_is_not() -> None:
    assert "The MLP has our settings" in notes(method="mlp", as_paper=False)
    assert "The MLP has our settings" not in notes(method="mlp", as_paper=True)


def test_a_wrong_panel_of_the_paper_is_noted() -> None:
    assert "this panel of the paper repeats GCN-concat" in notes("max-degree")
    scores = published_scores("max-degree")
    for (dataset, series, epsilon), score in scores.items():
        if dataset == "reddit" and series.startswith("GIN-concat"):
            other = scores[dataset, series.replace("GIN", "GCN"), epsilon]
            assert score.mean == other.mean
            assert score.note
