"""Chaos suite: real runs of `vesper` that are killed, filled up, cut off and lied to.

    make chaos                          trials for an hour, resumable; results in runs/chaos/
    make chaos ARGS="--minutes 5"       for five minutes
    make chaos ARGS=--write             and write the table into docs/reliability.md

`docs/reliability.md` says what is promised and how each trial checks it.
"""
