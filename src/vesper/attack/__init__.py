"""Attacks on finished runs: which edges exist, which nodes were trained on, which labels they have.

In reading order:

    rerun              a simulated run repeated with its seed, to see what the label party saw
    roc                AUC with a confidence interval, and likelihood ratios from perturbed rows
    attack_result      the result of an attack, in all and by degree
    edges              attacks on edges; they score pairs by `edge_likelihood`, `edge_influence`
                       or `edge_similarity`
    node_membership    training nodes told apart from others by their posteriors
    label_inference    labels that the data party infers from what it receives
"""
