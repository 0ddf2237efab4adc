"""Floating-point twins of the claims on sensitivity, for proofs and tests, with certificates.

No certified release is computed here: releases use the integers of `aggregations`. Only `sampled`,
the paper's methods, takes weights and claimed sensitivities from this package.

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
