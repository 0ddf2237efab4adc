"""Audits that must find something, and audits that must not."""

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
from vesper.mechanism.noise.span import NoiseSpan

PAPER = "paper-gin"


def run(trials: int, given: dict[str, Any], **options: Any) -> AuditResult:
    return run_audit(given, trials=trials, **options)


def test_one_release_is_found_within_a_factor_of_two_and_not_beyond() -> None:
    found = run(20, {"method": "certified", "epsilon": 4.0, "hops": 1, "seed": 3})
    assert found.statistic == "exact likelihood ratio of the releases"
    assert (found.certified_epsilon, found.claimed_epsilon) == (4.0, None)
    assert 2.0 < found.epsilon_lower_bound < 4.0
    assert found.verdict == "not refuted"
    assert found.best_possible_epsilon == pytest.approx(4.0, rel=0.03)
    assert 0 < found.epsilon_without_assumption < found.epsilon_lower_bound


def test_two_releases_stay_below_too() -> None:
    found = run(6, {"method": "certified", "epsilon": 4.0, "hops": 2})
    assert 0.3 < found.epsilon_lower_bound < 4.0
    assert found.verdict == "not refuted"


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_too_little_noise_is_caught(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = NoiseSpan.add_gaussian_to

    def sabotaged(
        self: NoiseSpan, values: NDArray[np.int32], *, scale: float, first: int = 0
    ) -> None:
        if share:
            draw(self, values, scale=share * scale, first=first)

    monkeypatch.setattr(NoiseSpan, "add_gaussian_to", sabotaged)
    found = run(4, {"method": "certified", "epsilon": 4.0})
    assert found.verdict == "refuted"
    assert found.epsilon_lower_bound > 8
    assert found.certified_epsilon == 4.0


def test_a_run_without_noise_is_held_against_its_claim() -> None:
    found = run(4, {"method": "certified", "epsilon": float("inf")}, claim=4.0)
    assert (found.plan, found.verdict, found.claimed_epsilon) == ("none", "refuted", 4.0)
    assert found.detections == found.observations
    assert found.false_alarms == 0
    no_progress = run(4, {"method": "certified", "epsilon": float("inf")})
    assert no_progress.verdict == "nothing promised"


def test_weights_that_learn_from_raw_edges_refute_the_paper() -> None:
    found = run(16, {"method": PAPER, "epsilon": 1.0, "delta": 1e-5}, target="weights")
    assert found.statistic == "exact likelihood ratio of the perturbed rows"
    assert found.certified_epsilon is None
    assert found.claimed_epsilon == pytest.approx(1.0, rel=1e-5)
    assert found.epsilon_lower_bound > 2
    assert found.verdict == "refuted"


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["rows", "held-out"])
def test_known_roots_refute_the_paper(target: str) -> None:
    found = run(12, {"method": PAPER, "epsilon": 4.0, "delta": 1e-5}, target=target)
    assert found.canaries == 20
    assert 4.0 < found.epsilon_lower_bound < (8.3 if target == "rows" else 11.4)
    assert found.verdict == "refuted"


def test_noise_after_which_nobody_learns_is_not_refuted_by_weights() -> None:
    """The same graph and rate with the certified plan: no gradient meets an edge."""
    found = run(8, {"method": "certified", "epsilon": 1.0, "learning_rate": 0.01}, target="weights")
    assert found.verdict == "not refuted"


def test_a_method_that_reads_no_edge_shows_none() -> None:
    found = run(4, {"method": "mlp"})
    assert found.epsilon_lower_bound == 0.0
    assert found.certified_epsilon == 0.0
    assert found.verdict == "not refuted"


def test_a_network_without_noise_shows_the_edge() -> None:
    found = run(24, {"method": "gin", "width": 16, "batch_size": 50, "epochs": 1}, claim=0.5)
    assert found.statistic.startswith("linear score")
    assert found.assumes == "nothing"
    assert found.epsilon_lower_bound > 0.5
    assert found.verdict == "refuted"


def test_randomised_edges_are_found_and_kept() -> None:
    found = run(10, {"method": "edgerand", "epsilon": 2.0, "epochs": 1})
    assert found.delta == 0.0
    assert found.epsilon_if_gaussian is None
    assert 0.7 < found.epsilon_lower_bound < 2.0
    assert found.canaries == 20
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
    found = run(4, settings, data=tmp_path, canaries=8, target="held-out")
    assert (found.canaries, found.observations, found.seed) == (8, 32, 7)
    assert found.epsilon_lower_bound < 4.0
    with pytest.raises(InputError, match="--target: expected rows or held-out with --data"):
        run(4, settings, data=tmp_path, target="weights")
    with pytest.raises(InputError, match="ask for fewer with --canaries"):
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
        ({"trials": 4, "canaries": 60}, "found 100; ask for fewer with --canaries"),
    ],
)
def test_questions_that_have_no_answer_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_audit({"method": "certified"}, **options)
