"""Simulated graphs with classes: `published.py` has the models, `simulate.py` draws them."""
