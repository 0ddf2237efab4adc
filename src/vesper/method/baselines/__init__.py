"""Baselines: the methods that the certified one is compared with.

- `mlp`: features only.
- `hop_releases`: GAP and ProGAP, one release per hop.
- `sampled`: base of all methods on sampled neighbourhoods, which are those below.
- `gnn`: GIN and GCN without privacy.
- `paper`: the same with the paper's noise and its claimed epsilon.
- `vfgnn`: noise on the output alone.
- `noisy_graph`: EdgeRand and LapGraph, which train on one graph of noisy edges.
"""
