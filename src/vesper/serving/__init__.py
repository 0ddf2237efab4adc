"""Predictions after training: the data party serves embeddings, the label party decodes them.

Read in this order:

- `served_graph.py`, `snapshots.py`: the graph that a data party serves, and its budget
- `embedding_server.py`: the data party answers queries
- `embedding_client.py`, `embedding_cache.py`: the label party sends queries and stores the answers
- `predictor.py`, `multi_party_predictor.py`: predictions with one data party or several
- `prediction_tables.py`: input and output files of `vesper predict`
- `http/`: predictions over HTTP, for `vesper serve`
"""
