"""From transactions to party folders, with DuckDB. Start at `job.py`."""
