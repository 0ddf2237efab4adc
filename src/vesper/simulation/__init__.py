"""Simulation: all parties of a run in one process, with noise from a seed.

Read in this order:

- `simulate.py`: party folders in, a run folder out (`vesper simulate`)
- `in_process.py`: the sessions of all parties, in threads
- `snapshot_run.py`: the trained model on snapshots
- `stage0_cache.py`: stage 0 of an equal run, reused in studies
- `recording.py`: methods that record what the parties receive, for attacks and audits
"""
