"""Published scores are the numbers that the paper prints."""

import math

import pytest

from vesper.study.presets import published_histograms, published_scores


@pytest.mark.parametrize(
    ("study", "key", "mean", "deviation"),
    [
        ("table-1", ("products", "VESPER(GIN)", 16.0), 75.36, 0.49),
        ("table-1", ("finance", "GCN", math.inf), 80.13, 0.41),
        ("table-full", ("products", "VESPER(GIN-concat)", 16.0), 75.18, 0.52),
        ("table-full", ("reddit", "VFGNN", 32.0), 86.72, 0.33),
        ("trade-off", ("reddit", "VESPER(GIN)", 1.0), 20.43, 1.61),
        ("membership", ("finance", "VESPER(GCN)", math.inf), 51.35, 1.75),
        ("max-degree", ("finance", "GIN-concat, D=10", 4.0), 67.03, math.nan),
    ],
)
def test_published_scores(
    study: str, key: tuple[str, str, float], mean: float, deviation: float
) -> None:
    score = published_scores(study)[key]
    assert (score.mean, score.seeds) == (mean, 10)
    assert score.deviation == pytest.approx(deviation, nan_ok=True)


def test_the_full_table_equals_the_ablation_at_batch_size_32_on_dense_graphs() -> None:
    full, batches = published_scores("table-full"), published_scores("batch-size")
    for dataset in ("products", "reddit"):
        for model in ("GIN-concat", "GIN-gru", "GCN-concat", "GCN-gru"):
            for epsilon in (4.0, 8.0, 16.0, 32.0):
                printed = full[dataset, f"VESPER({model})", epsilon].mean
                assert batches[dataset, f"{model}, B=32", epsilon].mean == pytest.approx(
                    printed, abs=0.02
                )


def test_a_study_of_a_user_has_no_published_scores() -> None:
    assert published_scores("mine") == {}
    assert published_scores("degree-histograms") == {}


def test_published_histograms_count_all_nodes_of_two_of_three_data_sets() -> None:
    # The paper's bars show 2,133,449 of the 2,449,029 nodes of ogbn-products.
    nodes = {"products": 2_133_449, "reddit": 232_965, "finance": 1_132_511}
    for dataset, counts in published_histograms().items():
        assert len(counts) == 51
        assert sum(counts) == pytest.approx(nodes[dataset], rel=0.01)


def test_configurations_are_those_of_equal_numbers_in_the_ablations() -> None:
    full = published_scores("table-full")
    for study, name in (("max-degree", "D="), ("min-degree", "D_min=")):
        scores = published_scores(study)
        for (dataset, series, epsilon), score in full.items():
            for word in score.configuration.split():
                if word.startswith(name):
                    model = series.removeprefix("VESPER(").removesuffix(")")
                    ablation = scores[dataset, f"{model}, {word}", epsilon]
                    assert ablation.mean == pytest.approx(score.mean, abs=0.015)
                    assert not ablation.note
