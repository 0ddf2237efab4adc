"""The balance that a run may reveal: its own charges, and counts, which all graphs share.

    counted = max over graphs of the sum of epsilons of its degree histograms

Noise is planned for epsilon - counted. Counts of the graph at hand alone would suffice for privacy
accounting, but which account that graph has depends on its edges: noise that differs when an older
snapshot has the same edges would reveal to the label party that no edge has changed (claim
L-FILTER).
"""

from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import balance_from
from vesper.privacy.ledger.balance import Balance, terms_of
from vesper.privacy.ledger.reader import DEGREES, Entry, LedgerReader, epsilon_of_counts
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.relation import NodeRelation


def balance_of_run(ledger: LedgerReader, graph: str, run: str) -> Balance:
    """Return the balance of a graph after this run and after counts of any graph.

    The peer of this run must not see what other runs were charged for the same edges: that would
    reveal that the edges are the same.
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
