"""Evidence of attacks, audits and degrees on the page; anything else is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vesper.errors import InputError
from vesper.report.contents import Contents
from vesper.report.evidence_section import degree_chart, read_evidence
from vesper.report.page import render

ATTACK = {
    "attack": "edge-likelihood",
    "method": "certified",
    "auc": 0.731,
    "ci_low": 0.7,
    "ci_high": 0.76,
    "tpr_at_0.1pct_fpr": 0.0125,
    "knows": "features <and> batches",
}
AUDIT = {
    "method": "certified",
    "epsilon_lower_bound": "inf",
    "confidence": 0.95,
    "certified_epsilon": 4.0,
    "claimed_epsilon": None,
    "verdict": "not refuted",
    "detections": 330,
    "false_alarms": 163,
    "observations": 500,
}
DEGREES = {"counts": [807.0, -3.5, 230.0], "mean_degree_at_least": 2.2, "spent_epsilon": 0.1}


def write_json(folder: Path, facts: Any) -> Path:
    path = folder / "facts.json"
    path.write_text(json.dumps(facts))
    return path


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (ATTACK, ["Attack: edge-likelihood", "0.731 (95 % confidence: 0.700 to 0.760)"]),
        (ATTACK, ["1.25 %", "&lt;and"]),
        (AUDIT, ["inf (95 % confidence)", "Certified epsilon", "not refuted", "330, 163"]),
        (DEGREES, ["epsilon 0.1 was charged", "number of neighbours"]),
    ],
)
def test_it_is_on_the_page(
    tmp_path: Path, contents: Callable[..., Contents], facts: dict[str, Any], words: list[str]
) -> None:
    evidence = read_evidence(write_json(tmp_path, facts), method="certified")
    page = render(contents(evidence=(evidence,)))
    assert all(each in page for each in words)
    assert "Claimed epsilon" not in page


def test_a_noisy_count_below_zero_has_no_bar() -> None:
    heights = [part.partition('"')[0] for part in degree_chart([5.0, -2.0]).split('height="')[1:]]
    assert float(heights[0]) > 0
    assert float(heights[1]) == 0


@pytest.mark.parametrize("facts", [[], "auc", {}, {"auc": 0.5}, {**AUDIT, "confidence": "high"}])
def test_what_is_no_evidence(tmp_path: Path, facts: Any) -> None:
    with pytest.raises(InputError, match=r"facts.json: expected the --json output of"):
        read_evidence(write_json(tmp_path, facts), method="certified")


def test_evidence_about_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="about method 'gap', got evidence about 'certified'"):
        read_evidence(write_json(tmp_path, ATTACK), method="gap")
    with pytest.raises(InputError, match="cannot be read"):
        read_evidence(tmp_path / "missing.json", method="gap")
