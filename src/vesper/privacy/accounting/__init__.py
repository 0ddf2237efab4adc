"""Accounting: from noise to (epsilon, delta) and back, always rounded to the safe side.

In reading order:

- `budget.py`: `Budget` and `NonPrivate`.
- `participation.py`: the certified accountant, one sum of charges per node (claim L-FILTER).
- `gaussian.py`: mu-GDP as (epsilon, delta), exactly (claim G-CONVERT).
- `pure.py`: pure epsilon as mu (claim PURE-TO-GDP), and Laplace noise for counts.
- `randomized_response.py`: randomised response for labels (claim LABEL-RR).
- `renyi.py` and `theorem_1.py`: the paper's accountant; its results are claimed, not certified.
- `published_noise.py`: the accountant of GAP and ProGAP, whose results are claimed as well.
- `safe_numbers.py`: parameters checked, numbers rounded and searched on the safe side.

Nothing in here opens a file or knows of a graph.
"""
