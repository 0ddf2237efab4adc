"""Neighbour sampling: batches of sampled neighbourhoods, identical for any number of threads.

- `sampler`: samples one batch after another from a graph
- `expand`: Numba kernels that draw the sampled rows of one hop
- `relabel`: Numba kernels that number the nodes of a batch
- `subgraph`: the result, and rows drawn from a part of a graph
"""
