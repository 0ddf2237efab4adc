"""The only way for edges to leave: bounded aggregation, noise and release behind a door.

This package and `vesper.graph` are the only readers of adjacency. A certified value that was
computed from an edge leaves through `release.release`, which adds noise and takes a receipt from
the ledger; graphs of noisy edges and degree histograms have functions of their own, which take a
receipt in the same way.

In reading order:

    door               what a method may ask of a graph: charged, claimed, open and closed doors
    release            noisy aggregates for a receipt: where edges leave
    release_store      releases on disk, so that noise is never drawn twice for one charge
    release_key        the key of a release that is drawn: on disk until the release is stored
    replay_door        reads earlier releases; recording_door keeps a copy of what it gives out
    stored_door        keeps releases in memory, and gives them out when a model is loaded
    label_door         randomised response for labels; first_labels records what was answered
    fingerprint        a keyed digest of a graph for its owner, and the check of its arrays
    graph_version      what the ledger records of a graph each time it is opened
    degree_histogram   a private degree histogram
    likelihood         exact likelihood ratios of edges given a release, for audits
    aggregations/      the sum and its alternatives in exact integers, each with a proved bound
    noise/             noise drawn exactly from AES-CTR bits
    noisy_graph/       EdgeRand and LapGraph: whole graphs of noisy edges
    sampled/           layers of the paper's plan, which certify nothing
    reference/         the claims in floating point, and certificates that check them
"""
