"""What a run may say of its budget: its own charges, and counts, which all graphs share.

What counts have cost under a ledger, whichever graph they were made of.

    counted = max over graphs of the sum of epsilons of its degree histograms

Noise is planned for epsilon - counted. The counts of the graph at hand would do, but which graph
that is follows from its edges: noise that differs when an older snapshot has the same edges would
tell the label party that none has changed (claim L-FILTER).
"""

from collections import defaultdict
from fractions import Fraction

from vesper.privacy.events import PURE_KIND, PureRelease
from vesper.privacy.ledger.account import balance_from
from vesper.privacy.ledger.balance import Balance, terms_of
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.relation import NodeRelation

DEGREES = "degree histogram"


def epsilon_of_counts(ledger: LedgerReader, *, before_run: str | None = None) -> Fraction:
    """Give the largest sum, of all counts or of those before the first charge of a run."""
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for entry in ledger.entries():
        if before_run is not None and entry.run == before_run and entry.cost > 0:
            break
        facts = entry.facts
        if facts["kind"] == PURE_KIND and str(facts["what"]).startswith(DEGREES):
            sums[entry.graph] += Fraction(facts["epsilon"])
    return max(sums.values(), default=Fraction(0))


def balance_of_run(ledger: LedgerReader, graph: str, run: str) -> Balance:
    """Give the balance of a graph after this run, and after counts of whichever graph.

    What other runs were charged for the same edges is nothing that the peer of this one may see:
    it would tell that edges are the same.
    """
    entries = [e for e in ledger.entries() if e.graph == graph and e.run in ("", run)]
    counts = epsilon_of_counts(ledger, before_run=run)
    first = next((k for k, entry in enumerate(entries) if entry.cost > 0), len(entries))
    _, relation = terms_of({entry.facts["kind"]: entry.facts for entry in entries})
    if counts and not isinstance(relation, NodeRelation):
        event = PureRelease(epsilon=float(counts), what=DEGREES)
        facts = {**event.facts, "epsilon": counts}
        everyone = encode(None, entries[0].facts["num_nodes"])
        made = Entry(0, 0.0, graph, run, facts, event.cost, everyone)
        entries.insert(first, made)
    return balance_from(ledger, graph, entries)
