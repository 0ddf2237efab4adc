"""The private graph: tables in, a frozen CSR graph out, then sampling and training batches.

Reading a party folder, in this order:

- `table_source`: opens one table, Parquet or CSV
- `ids`, `text_index`: node ids and their positions
- `features`: edge-free node features as a matrix on disk
- `csr`, `csr_kernels`: the edge table as a CSR graph, in bounded memory
- `graph`: the frozen graph itself
- `holdings`: all of the above for a data party's folder, with a cache
- `labels`: the label party's table
- `summary`: counts that `vesper data check` prints

Graphs from elsewhere and what is computed on a graph:

- `foreign`: graphs of PyG, DGL, scipy, numpy and torch; `adjacency`: matrices and networkx
- `frames`: data frames of pandas, polars and Arrow, and ids from them
- `edges/`: the edge relation, subgraphs, pairs with and without an edge
- `sampling/`: the neighbour sampler
- `schedule`: which nodes are in which training batch; never sees a graph
"""
