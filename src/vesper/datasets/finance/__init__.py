"""A payment platform that never existed; `simulate.py` says what it writes."""

from vesper.datasets.finance.simulate import simulate_finance

__all__ = ["simulate_finance"]
