"""Audits: lower bounds on what a run really leaks about an edge or a node.

In reading order:

    canaries       edges, or nodes with all their edges, that are present in half of the runs
    small_graphs   graphs to audit on, each built for one question
    trial          one run with some of the canaries, and a score for each of them
    twin           a run of the paper's plan in two worlds at once, for its exact likelihood ratio
    bound          from scores to a lower bound on epsilon, with a stated confidence
    audit          all trials of an audit, and its verdict
    command        from the options of `vesper audit` to an audit
"""
