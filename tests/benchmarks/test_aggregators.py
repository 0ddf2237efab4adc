"""The table summarizes the result lines, and clamps are chosen by validation."""

from benchmarks.aggregators import VARIANTS, Result, config_of, table

from vesper.method.options import AGGREGATORS_OF_METHOD


def line(
    aggregator: str, seed: int, validation: float, test: float, min_degree: int | None = None
) -> Result:
    return Result(
        dataset="some",
        aggregator=aggregator,
        min_degree=min_degree,
        epsilon="4",
        seed=seed,
        settings="s",
        metric="accuracy",
        validation=validation,
        test=test,
        edge_free_validation=50.0 + seed,
        edge_free_test=60.0,
    )


def test_the_table_has_means_deviations_and_the_clamp_with_the_best_validation() -> None:
    lines = [
        line("gin", 0, 80.0, 81.0),
        line("gin", 1, 82.0, 83.0),
        line("gcn-clamped", 0, 70.0, 99.0, min_degree=5),
        line("gcn-clamped", 0, 71.0, 65.0, min_degree=40),
    ]
    free, gin, gcn, clamped = table(lines, epsilons=(4.0,))[2:6]
    assert free == "| some | accuracy | no edges | 60.00 ± 0.00 (50.50; 2) |"
    assert gin == "| some | accuracy | gin | 82.00 ± 1.41 (81.00; 2) |"
    assert gcn == "| some | accuracy | gcn | - |"
    assert clamped == "| some | accuracy | gcn-clamped | 65.00 ± - (71.00; 1), m = 40 |"


def test_all_aggregators_are_measured_with_defaults_otherwise() -> None:
    assert {aggregator for aggregator, _ in VARIANTS} == set(AGGREGATORS_OF_METHOD["certified"])
    privacy = config_of("gat", None, 1.0, 3).privacy
    assert (privacy.aggregator, privacy.epsilon, privacy.min_degree) == ("gat", 1.0, 5)
    assert config_of("gcn-clamped", 40, 1.0, 3).privacy.min_degree == 40
