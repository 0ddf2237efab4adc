"""Pages about a run, for people: how good the model is and what its privacy guarantee is worth.

Read in this order:

- `run_folder.py`, `live_run.py`: read a finished run, or a run in progress, from its folder
- `privacy.py`, `words.py`: the guarantee in numbers and in plain words
- `contents.py`: everything that a report shows
- `page.py`, `sections.py`: the report of a finished run (`vesper report`) and its sections
- `budget_section.py`, `graphs.py`, `evidence_section.py`: charges, graphs, attacks and audits
- `charts.py`, `learning_curves.py`, `html.py`: charts, tables and the style sheet
- `board_page.py`, `live_board.py`: the live page of `vesper board` and its HTTP responses
- `registry_record.py`: the same facts as a record of OpenDP's deployments registry
"""
