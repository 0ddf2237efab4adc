"""From transactions to party folders, with DuckDB.

- `job`: the work of `vesper prepare` from start to end; start here
- `windows`: train and test windows, and a folder per window
- `transaction_table`, `transaction_columns`: the user's tables as SQL, and refusal of bad rows
- `edge_free`: refusal of features that depend on edges
- `database`: the scratch database
- `nodes`: nodes, labels and edges from the tables
- `event_groups`, `activity_features`: features of a node from its activity
- `output_tables`: the tables of the party folders
"""
