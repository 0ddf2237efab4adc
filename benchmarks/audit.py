"""`make audit-page`: audits of both plans with three seeds, and the page about them.

Results are in benchmarks/audit.jsonl, one line per audit; audits with a result are not run again.
`--again` deletes all results first.
"""

import argparse
import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.audit_page import Finding, page_of

from vesper.audit.command import run_audit

SEEDS = (0, 1, 2)
DELTA = 1e-5
RESULTS = Path(__file__).parent / "audit.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "audit.md"


@dataclass(frozen=True)
class Question:
    """One row of the page: an audit for each seed."""

    asks: str
    method: str
    epsilon: float
    trials: int
    target: str = "rows"
    claim: float | None = None
    unit: str | None = None
    given: dict[str, Any] = field(default_factory=dict)


NODE = {"privacy_unit": "node"}

QUESTIONS = (
    Question("certified: one release", "certified", 4.0, 25, given={"hops": 1}),
    Question("certified: two releases", "certified", 4.0, 25, given={"hops": 2}),
    Question("certified: where the paper's weights leak", "certified", 4.0, 40, "weights"),
    Question("noise switched off, 4 claimed", "certified", math.inf, 6, claim=4.0),
    Question("paper: the label party knows the roots", "paper-gin", 4.0, 12),
    Question("paper: weights learn from raw edges", "paper-gin", 1.0, 40, "weights"),
    Question(
        "paper: truncated GCN, an edge across D_min",
        "paper-gcn",
        1.0,
        25,
        given={"batch_size": 10, "epochs": 1, "min_degree": 5},
    ),
    Question("paper: validation is not counted", "paper-gin", 4.0, 6, "held-out"),
    Question(
        "GAP as published: sensitivity 1", "gap", 4.0, 40, given={"accounting": "as-published"}
    ),
    Question("nodes protected: one release", "certified", 4.0, 25, given={**NODE, "hops": 1}),
    Question("nodes protected: two releases", "certified", 4.0, 25, given={**NODE, "hops": 2}),
    Question(
        "nodes: noise switched off, 4 claimed", "certified", math.inf, 6, claim=4.0, given=NODE
    ),
    Question(
        "edges protected, a node asked for", "certified", 4.0, 6, unit="node", given={"hops": 1}
    ),
)
"""In the order of the page."""


def findings() -> list[Finding]:
    if not RESULTS.exists():
        return []
    return [json.loads(text) for text in RESULTS.read_text(encoding="utf-8").splitlines()]


def answer(question: Question, seed: int) -> Finding:
    started = time.perf_counter()
    settings = {
        "method": question.method,
        "epsilon": question.epsilon,
        "delta": DELTA,
        "seed": seed,
    }
    result = run_audit(
        {**settings, **question.given},
        trials=question.trials,
        target=question.target,
        claim=question.claim,
        unit=question.unit,
    )
    seconds = round(time.perf_counter() - started, 1)
    return {**result.as_json(), "asks": question.asks, "asked_seed": seed, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="delete earlier results")
    parser.add_argument("--table", action="store_true", help="run nothing, only write the page")
    options = parser.parse_args()
    if options.again:
        RESULTS.unlink(missing_ok=True)
    known = {(each["asks"], each["asked_seed"]) for each in findings()}
    for question in QUESTIONS:
        for seed in SEEDS:
            if options.table or (question.asks, seed) in known:
                continue
            finding = answer(question, seed)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(finding) + "\n")
            print(f"{question.asks}, seed {seed}: {finding['verdict']} ({finding['seconds']} s)")
    order = [question.asks for question in QUESTIONS]
    PAGE.write_text(page_of(findings(), order=order), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
