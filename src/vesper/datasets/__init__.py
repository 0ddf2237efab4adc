"""Sources of party folders: simulators, transactions, and public data on disk.

- `folders`: a new output folder that appears whole or not at all
- `party_tables`: the three tables of a pair of party folders
- `block_model/`: simulated graphs with classes, like ogbn-products and Reddit
- `finance/`: a simulated payment platform
- `prepare/`: party folders from transactions
- `loaders/`: party folders from public data
"""
