"""Audits that must detect a leak, and audits that must not."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from vesper.audit.audit import AuditResult, verdict_of
from vesper.audit.command import run_audit
from vesper.errors import InputError
from vesper.mechanism.noise.noise_source import NoiseSpan

PAPER = "paper-gin"


def run(trials: int, given: dict[str, Any], **options: Any) -> AuditResult:
    return run_audit(given, trials=trials, **options)


def test_the_bound_for_one_release_is_within_a_factor_of_two_of_epsilon() -> None:
    result = run(20, {"method": "certified", "epsilon": 4.0, "hops": 1, "seed": 3})
    assert result.statistic == "exact likelihood ratio of the releases"
    assert (result.certified_epsilon, result.claimed_epsilon) == (4.0, None)
    assert 2.0 < result.epsilon_lower_bound < 4.0
    assert result.verdict == "not refuted"
    assert result.best_possible_epsilon == pytest.approx(4.0, rel=0.03)
    assert 0 < result.epsilon_without_assumption < result.epsilon_lower_bound


def test_two_releases_stay_below_epsilon_too() -> None:
    result = run(6, {"method": "certified", "epsilon": 4.0, "hops": 2})
    assert 0.3 < result.epsilon_lower_bound < 4.0
    assert result.verdict == "not refuted"


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_too_little_noise_is_detected(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = NoiseSpan.add_gaussian_to

    def sabotaged(
        self: NoiseSpan, values: NDArray[np.int32], *, scale: float, first: int = 0
    ) -> None:
        if share:
            draw(self, values, scale=share * scale, first=first)

    monkeypatch.setattr(NoiseSpan, "add_gaussian_to", sabotaged)
    result = run(4, {"method": "certified", "epsilon": 4.0})
    assert result.verdict == "refuted"
    assert result.epsilon_lower_bound > 8
    assert result.certified_epsilon == 4.0


def test_a_run_without_noise_is_compared_with_its_claim() -> None:
    result = run(4, {"method": "certified", "epsilon": float("inf")}, claim=4.0)
    assert (result.plan, result.verdict, result.claimed_epsilon) == ("none", "refuted", 4.0)
    assert result.detections == result.observations
    assert result.false_alarms == 0
    without_claim = run(4, {"method": "certified", "epsilon": float("inf")})
    assert without_claim.verdict == "nothing promised"


def test_weights_that_learn_from_raw_edges_refute_the_paper() -> None:
    result = run(16, {"method": PAPER, "epsilon": 1.0, "delta": 1e-5}, target="weights")
    assert result.statistic == "exact likelihood ratio of the perturbed rows"
    assert result.certified_epsilon is None
    assert result.claimed_epsilon == pytest.approx(1.0, rel=1e-5)
    assert result.epsilon_lower_bound > 2
    assert result.verdict == "refuted"


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["rows", "held-out"])
def test_known_roots_refute_the_paper(target: str) -> None:
    result = run(12, {"method": PAPER, "epsilon": 4.0, "delta": 1e-5}, target=target)
    assert result.canaries == 20
    assert 4.0 < result.epsilon_lower_bound < (8.3 if target == "rows" else 11.4)
    assert result.verdict == "refuted"


def test_weights_do_not_refute_the_certified_plan() -> None:
    """The same graph and learning rate with the certified plan: no gradient depends on an edge."""
    result = run(
        8, {"method": "certified", "epsilon": 1.0, "learning_rate": 0.01}, target="weights"
    )
    assert result.verdict == "not refuted"


def test_a_method_that_reads_no_edge_leaks_none() -> None:
    result = run(4, {"method": "mlp"})
    assert result.epsilon_lower_bound == 0.0
    assert result.certified_epsilon == 0.0
    assert result.verdict == "not refuted"


def test_a_network_without_noise_leaks_the_edge() -> None:
    result = run(24, {"method": "gin", "width": 16, "batch_size": 50, "epochs": 1}, claim=0.5)
    assert result.statistic.startswith("linear score")
    assert result.assumes == "nothing"
    assert result.epsilon_lower_bound > 0.5
    assert result.verdict == "refuted"


def test_randomised_edges_are_bounded_below_their_epsilon() -> None:
    result = run(10, {"method": "edgerand", "epsilon": 2.0, "epochs": 1})
    assert result.delta == 0.0
    assert result.epsilon_if_gaussian is None
    assert 0.7 < result.epsilon_lower_bound < 2.0
    assert result.canaries == 20
    assert run(4, {"method": "lapgraph", "epsilon": 2.0, "epochs": 1}).canaries == 1


def test_an_audit_repeats() -> None:
    assert run(4, {"method": "certified"}) == run(4, {"method": "certified"})
    assert run(4, {"method": "certified", "seed": 1}) != run(4, {"method": "certified"})


def test_party_folders_are_audited_with_the_settings_of_a_run(tmp_path: Path) -> None:
    ids = np.arange(40)
    for name, table in {
        "data/nodes": {"id": ids, "f0": np.sin(ids).astype(np.float32)},
        "data/edges": {"src": ids, "dst": (ids + 1) % 40},
        "label/labels": {
            "id": ids,
            "label": ids % 2,
            "split": ["train", "train", "val", "val"] * 10,
        },
    }.items():
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(table), path)
    settings = {"method": "certified", "epochs": 1, "width": 4, "epsilon": 4.0, "seed": 7}
    result = run(4, settings, data=tmp_path, canaries=8, target="held-out")
    assert (result.canaries, result.observations, result.seed) == (8, 32, 7)
    assert result.epsilon_lower_bound < 4.0
    with pytest.raises(InputError, match="--target: expected rows or held-out with --data"):
        run(4, settings, data=tmp_path, target="weights")
    with pytest.raises(InputError, match="use fewer with --canaries"):
        run(4, settings, data=tmp_path, canaries=11)


def test_verdicts() -> None:
    assert verdict_of(1.1, 1.0, None) == "refuted"
    assert verdict_of(1.0, 1.0, 2.0) == "not refuted"
    assert verdict_of(9.0, None, None) == "nothing promised"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 3}, "--trials: expected at least 4, got 3"),
        ({"trials": 4, "confidence": 1.0}, "--confidence"),
        ({"trials": 4, "target": "nowhere"}, "--target: expected one of rows"),
        ({"trials": 4, "canaries": 0}, "--canaries: expected at least 1"),
        ({"trials": 4, "canaries": 60}, "found 100; use fewer with --canaries"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_audit({"method": "certified"}, **options)
