"""Networks, objectives and messages: they see released values and edge-free data, never an edge.

In reading order:

- `feature_scaling`, `sparse_inputs`, `principal_components`: features as inputs of networks.
- `encoders`, `sequence_encoders`, `custom_encoder`: from inputs to encodings; `encoding_cache`
  computes each encoding once.
- `pre`: the extractor of the certified plan, `edge_free_inference` its stage 0 for all nodes,
  `ensemble` its members as they cross the wire.
- `message_rows`, `relayed_rows`: what messages contain, and what is read of their sums.
- `message_passing`, `gap_network`: the networks of the paper and of the baselines.
- `decoders`, `standardize`: from embeddings to scores, at the label party.
- `objective`, `regression`, `noisy_labels`, `objective_factory`, `evaluation`: losses, metrics and
  predictions by task.
- `network_layers`, `unit_rows`: layers that repeat bit for bit on any number of threads.
- `unit_rows_kernel`: a compiled loop.
"""
