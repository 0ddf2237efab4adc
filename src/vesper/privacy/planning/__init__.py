"""Planning: what a run will cost and reveal, before there is data.

In reading order:

- `plan.py`: noise, epsilon of each phase, and what one more release would add.
- `probe_share.py`: how a budget is divided between the probe and the other releases.
- `traffic.py`: bytes that a run sends.
- `node_plan.py`: noise that protects all edges of a node.
- `paper_plan.py`: what the paper would claim for the same run, and what its noise is worth.
"""
