"""What counts have cost under a ledger, whichever graph they were made of.

    counted = max over graphs of the sum of epsilons of its degree histograms

Noise is planned for epsilon - counted. The counts of the graph at hand would do, but which graph
that is follows from its edges: noise that differs when an older snapshot has the same edges would
tell the label party that none has changed (claim L-FILTER).
"""

from collections import defaultdict
from fractions import Fraction

from vesper.privacy.events import PURE_KIND
from vesper.privacy.ledger_reader import LedgerReader

DEGREES = "degree histogram"


def counted(ledger: LedgerReader, *, before_run: str | None = None) -> Fraction:
    """Give the largest sum, of all counts or of those before the first charge of a run."""
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for entry in ledger.entries():
        if before_run is not None and entry.run == before_run and entry.cost > 0:
            break
        facts = entry.facts
        if facts["kind"] == PURE_KIND and str(facts["what"]).startswith(DEGREES):
            sums[entry.graph] += Fraction(facts["epsilon"])
    return max(sums.values(), default=Fraction(0))
