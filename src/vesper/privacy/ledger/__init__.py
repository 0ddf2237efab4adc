"""Ledger: the budget of each graph, and the append-only file of everything charged to it.

In reading order:

- `account.py`: the account of one graph; every charge is on disk before its receipt exists.
- `balance.py`: what a graph has spent, and the filter that refuses (claim L-FILTER).
- `receipt.py`: proof of one charge, and the encoding of receiver sets.
- `run_balance.py`: the part of a balance that one run may reveal.
- `store.py`: the file itself; `reader.py` reads and verifies it, `ledger_file.py` knows its format.
- `keys.py`: the secret of a ledger and the keys derived from it.
- `statement.py`: a signed statement of what a released file cost.
"""
