"""The one door for edges: aggregation with its bound, noise, release.

This package and `vesper.graph` are the only readers of adjacency. A value that was computed from an
edge leaves through `release.release`, which adds noise and takes a receipt from the ledger.
"""
