"""The page docs/audit.md, from the results of audits."""

import math
from collections.abc import Sequence
from typing import Any

Finding = dict[str, Any]

HEAD = """# Audit

Written by `make audit-page`. Every row is a `vesper audit`: real parties, doors and sessions on a
small graph, run with and without canaries, which are edges or nodes with all their edges. Delta is
1e-5, confidence 95 %.
"""

COLUMNS = (
    "question",
    "seed",
    "claimed",
    "certified",
    "epsilon at least",
    "without assumption",
    "at best",
    "detected",
    "false alarms",
    "verdict",
)

TAIL = """
**How to read it.** *Epsilon at least*: with 95 % confidence the run is not (epsilon, delta) for
any smaller epsilon, provided its noise is Gaussian of any size: then one point of the trade-off
between false alarms and misses determines the whole curve. *Without assumption*: the same from the
counts alone, which can never exceed the log of their number. *At best*: what unlimited trials with
these canaries would show if the noise is as promised. *Detected* and *false alarms* are the counts
behind the bold number.

*Refuted* means that more leaks than was promised. *Not refuted* is no proof; the proofs are in
[claims](claims/README.md). *Not covered* means that more leaks about a node than was promised about
an edge: `privacy_unit = "edge"` does not protect all edges of a person at once. An audit that
detects nothing proves nothing, but these audits are sensitive: for one release the bound comes
within a factor of two of the certified epsilon.

**What the label party receives.** Certified plan: everything that came out of the door. Embeddings
are computed from it and reveal no more. The score is the exact likelihood ratio of the two worlds.
Paper's plan: the rows of every root after the noise and before activation, as its Theorem 1 counts
them, and the batches, which the label party knows. The same run is followed in both worlds at once,
each with the weights it would have, so that the likelihood ratio is exact there too (one layer).
Where weights learn from edges, the distance of the two worlds varies from run to run; the bold
number treats the counts as if it were constant, and the number next to it assumes nothing.

**The graphs.** *Roots*, *validation* and releases: a ring of 148 nodes, each with four neighbours,
and 20 canary edges that share no node, each present or not by a coin toss. For the paper's plan one
layer of width 1, 100 training nodes, batches of 1, two epochs. *Weights*: two kinds of nodes; the
roots of the first batch have neighbours of one kind, those of the second batch of the other kind;
one canary edge joins a root of the first batch to a node of the other kind. One layer of width 16,
batches of 16, one epoch, Adam at 0.01. For the paper's plan the public seed is the one of eight
whose weights reveal most; the runs that choose it do not count.

*Nodes*: 20 stars of a centre and 20 nodes that have no other neighbour and the same message, the
worst case of claim [N-NODE](claims/N-NODE.md) at `max_degree` 20; a canary is a centre, and its
edges are all present or none. The likelihood ratio is that of its row and of its neighbours' rows,
clipped where the run clips them.

**Not included.** The swap at degree D + 1 ([erratum 3](errata.md)) is worst when neighbours send
opposite messages. Encodings after ReLU are never opposite, and with this code the canaries we tried
changed less than plain ones. The number in the errata is computed from the mechanism.
"""


def page_of(findings: Sequence[Finding], *, order: Sequence[str]) -> str:
    lines = [_row(COLUMNS), _row(["---"] * len(COLUMNS))]
    for asks in order:
        answers = [each for each in findings if each["asks"] == asks]
        answers.sort(key=lambda each: int(each["asked_seed"]))
        for place, each in enumerate(answers):
            lines.append(_row(_cells(each, asks if place == 0 else "")))
    return HEAD + "\n" + "\n".join(lines) + "\n" + TAIL


def _cells(finding: Finding, asks: str) -> list[str]:
    observations = finding["observations"]
    return [
        asks,
        str(finding["asked_seed"]),
        _number(finding["claimed_epsilon"]),
        _number(finding["certified_epsilon"]),
        f"**{finding['epsilon_lower_bound']:.2f}**",
        f"{finding['epsilon_without_assumption']:.2f}",
        _number(finding["best_possible_epsilon"]),
        f"{finding['detections']} / {observations}",
        f"{finding['false_alarms']} / {observations}",
        str(finding["verdict"]),
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return "inf" if math.isinf(value) else f"{round(value, 2):g}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
