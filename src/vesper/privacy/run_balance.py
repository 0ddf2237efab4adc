"""What a run may say of its budget: its own charges, and counts, which all graphs share."""

from vesper.privacy.account import balance_from
from vesper.privacy.balance import Balance
from vesper.privacy.counted import DEGREES, counted
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger_reader import Entry, LedgerReader
from vesper.privacy.receivers import encode
from vesper.privacy.relation import NodeRelation
from vesper.privacy.terms import terms_of


def balance_of_run(ledger: LedgerReader, graph: str, run: str) -> Balance:
    """Give the balance of a graph after this run, and after counts of whichever graph.

    What other runs were charged for the same edges is nothing that the peer of this one may see:
    it would tell that edges are the same.
    """
    entries = [e for e in ledger.entries() if e.graph == graph and e.run in ("", run)]
    counts = counted(ledger, before_run=run)
    first = next((k for k, entry in enumerate(entries) if entry.cost > 0), len(entries))
    _, relation = terms_of({entry.facts["kind"]: entry.facts for entry in entries})
    if counts and not isinstance(relation, NodeRelation):
        event = PureRelease(epsilon=float(counts), what=DEGREES)
        facts = {**event.facts, "epsilon": counts}
        everyone = encode(None, entries[0].facts["num_nodes"])
        made = Entry(0, 0.0, graph, run, facts, event.cost, everyone)
        entries.insert(first, made)
    return balance_from(ledger, graph, entries)
