"""A payment platform that never existed; `simulate.py` says what it writes."""

from vesper.datasets.finance.simulate_finance import simulate_finance

__all__ = ["simulate_finance"]
