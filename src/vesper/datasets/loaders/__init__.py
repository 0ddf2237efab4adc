"""Public data on disk: ogbn-products, Reddit, the neutral folder. Start at `convert.py`."""
