"""Export: released features as a signed file, and training from such a file.

Read in this order:

- `writer.py`: the data party writes the file and its statement (`vesper release`)
- `release_file.py`: the two files on disk, both complete or absent
- `released_rows.py`: the rows of labelled nodes, memory-mapped at the label party
- `learner.py`: the label party trains from the file (`vesper learn`)
- `learner_ranks.py`: several processes that train one model
"""
