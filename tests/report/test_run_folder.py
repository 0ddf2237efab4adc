"""Facts of a run folder: private only if two parties ran a certified plan."""

from pathlib import Path
from typing import Any

import pytest

from vesper.errors import InputError
from vesper.report.run_folder import privacy_from, read_run
from vesper.session.result import DRAWN_BY_DATA_PARTY, SECURE, SIMULATED

FACTS: dict[str, Any] = {
    "plan": "certified",
    "certified_epsilon": 4.0,
    "claimed_epsilon": None,
    "delta": 1e-6,
    "noise": "as it was",
    "noise_stds": [2.0],
    "releases": 2,
    "unit": "edge",
}


@pytest.mark.parametrize(
    ("plan", "session", "is_private"),
    [
        ("certified", "ab" * 16, True),
        ("certified", None, False),
        ("edge-free", None, True),
        ("paper", "ab" * 16, False),
        ("none", "ab" * 16, False),
    ],
)
def test_only_certified_sessions_and_edge_free_runs_are_private(
    plan: str, session: str | None, is_private: bool
) -> None:
    privacy = privacy_from({**FACTS, "plan": plan}, session=session, run_charges=None)
    assert privacy.is_private is is_private
    assert privacy.releases == 2, "the noise of the probe is not in the list"
    assert ("session abababab" in privacy.covers) is (session is not None)


def test_only_the_party_without_the_ledger_states_bounds() -> None:
    stored = {SECURE: False, SIMULATED: False, DRAWN_BY_DATA_PARTY: True}
    for noise, is_bound in stored.items():
        privacy = privacy_from({**FACTS, "noise": noise}, session="1234", run_charges=None)
        assert privacy.is_upper_bound is is_bound


def test_without_a_certificate_epsilon_is_infinite() -> None:
    facts = {**FACTS, "plan": "none", "certified_epsilon": None}
    assert privacy_from(facts, session=None, run_charges=None).epsilon == float("inf")


@pytest.mark.parametrize("result", ["[]", "{}", '{"privacy": 3}'])
def test_another_version(tmp_path: Path, result: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "result.json").write_text(result)
    with pytest.raises(InputError, match="expected a run folder of this version"):
        read_run(tmp_path)
