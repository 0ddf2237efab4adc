"""Ledger: the budget of each graph, and the append-only file of everything charged to it.

In reading order:

- `account.py`: the account of one graph; every charge is on disk before its receipt exists.
- `reservation.py`: what a run sets aside before its peer is contacted.
- `account_sums.py`, `cap.py`: what is spent and set aside, in exact units.
- `budget_filter.py`, `refusals.py`: what is refused, and why (claim L-FILTER).
- `balance.py`: what is left; `run_balance.py`: what one run may reveal of it.
- `account_reader.py`: balances from the entries of a ledger.
- `receipt.py`: proof of one charge, and the encoding of receiver sets.
- `graph_name.py`: names that owners give to graphs; `overlap.py`, `overlap_report.py`: warnings to
  the owner of two names for the same edges.
- `store.py`: the file itself; `reader.py` reads and verifies it, `ledger_file.py` knows its format.
- `keys.py`: the secret of a ledger and the keys derived from it.
- `statement.py`: a signed statement of what a released file cost.
"""
