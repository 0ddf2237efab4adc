"""Tables in, a frozen CSR graph, the edge relation, the neighbour sampler, the batch schedule."""
