"""The certified method: every edge is read through the door, and every release is charged.

In reading order:

- `method`: what the method is made of, and what it chooses by default.
- `staged_representation`: the data party's side; each stage freezes the one before and adds a hop.
- `probe`, `probe_size`: one release before the first hop, and how large it may be.
- `probe_decision`: from that release to findings, in one pure function; `message_content` chooses
  what messages contain, `evidence` measures what explains labels, and `query_nodes` compares nodes
  that predictions are wanted for with training nodes.
- `message_builder`: the messages of every hop, with `feature_projection` and `relay` as content;
  `probe_sums`: sums of the probe that the first hop uses again.
- `fitted_constants`: what is fixed on the training graph and used on every other graph.
"""
