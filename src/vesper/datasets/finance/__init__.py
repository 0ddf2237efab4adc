"""A simulated payment platform.

- `simulate_finance`: the command's simulator, and which files it writes; start here
- `finance_tables`: writes transfers, activity and known labels
- `transfers`: the payment graph of one window
- `patterns`: fraud patterns in that graph
- `activity`: what users do alone
"""

from vesper.datasets.finance.simulate_finance import simulate_finance

__all__ = ["simulate_finance"]
