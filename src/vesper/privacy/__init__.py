"""Privacy: what is protected, what a release costs, and what may still be released.

In reading order:

- `relation.py`: the neighbouring relations: one edge, one node or one label.
- `events.py`: what can be charged, and what each charge costs a node.
- `accounting/`: arithmetic from noise to (epsilon, delta) and back; opens no files.
- `ledger/`: the account of each graph, receipts, and the append-only file of all charges.
- `planning/`: noise, cost and traffic of a run before there is data.
"""
