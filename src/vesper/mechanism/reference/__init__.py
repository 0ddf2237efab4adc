"""The claims on sensitivity in floating point, each with its class, and certificates for them.

In reading order:

    linear              linear aggregations: the interface, and row normalisation
    certify             sensitivity by brute force over all small graphs
    gin, gcn            the sum, and GCN under a minimum-degree promise
    gcn_truncated       the paper's truncated GCN, whose claim is refuted
    gcn_clamped, gcn_released, mean_clamped, bounded_attention, coordinate_max, hash_cap
                        sound alternatives
    vfgnn_bound         noise on normalised outputs, as in a baseline of the paper
    node_relation       the node relation: clipped sums
"""
