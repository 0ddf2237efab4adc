"""The table summarizes the result lines."""

from benchmarks.exchange import Result, config_of, table


def line(wire: str, local_updates: int, seed: int, test: float, sent: int) -> Result:
    return Result(
        dataset="finance",
        nodes=10,
        wire=wire,
        local_updates=local_updates,
        seed=seed,
        settings="s",
        metric="roc_auc",
        validation=0.0,
        test=test,
        bytes_to_label_party=sent,
        bytes_to_data_party=sent,
        exchanges=7,
    )


def test_the_table_has_means_deviations_and_shares_of_bytes() -> None:
    lines = [
        line("int8", 4, 0, 70.0, 1_000_000),
        line("float32", 1, 0, 80.0, 3_000_000),
        line("float32", 1, 1, 82.0, 5_000_000),
    ]
    usual, cheap = table(lines)[2:]
    assert usual.startswith("| finance | float32 | 1 | 2 | roc_auc | 0.00 ± 0.00 | 81.00 ± 1.41 |")
    assert usual.endswith("| 7 | 4.0 | 4.0 | 1.00 x |")
    assert cheap.startswith("| finance | int8 | 4 | 1 | roc_auc | 0.00 ± - | 70.00 ± - |")
    assert cheap.endswith("| 7 | 1.0 | 1.0 | 0.25 x |")


def test_epochs_and_patience_are_divided_by_local_updates() -> None:
    run = config_of("int8", 4, 0, epochs=40).run
    assert (run.epochs, run.patience, run.local_updates, run.wire) == (10, 2, 4, "int8")
