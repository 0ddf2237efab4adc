"""Pages about a run, for people: how good the model is and what its privacy guarantee is worth.

Read in this order:

- `run_folder.py`, `live_run.py`: read a finished run, or a run in progress, from its folder
- `privacy.py`, `words.py`: the guarantee in numbers and in plain words
- `contents.py`: everything that a report shows
- `page.py`, `sections.py`: the report of a finished run (`vesper report`) and its sections
- `budget_section.py`, `graphs.py`, `evidence_section.py`: charges, graphs, attacks and audits
- `evaluation_section.py`, `threshold_curves.py`, `classification_charts.py`: how good it predicts
- `charts.py`, `learning_curves.py`, `html.py`: charts, tables and the style sheet
- `run_facts.py`, `downloads.py`: what a page shows as JSON and CSV, in links
- `run_list.py`, `run_list_page.py`, `run_naming.py`: the runs below a folder (`vesper runs`)
- `comparison.py`, `comparison_page.py`, `tradeoff_chart.py`: runs side by side (`vesper compare`)
- `board_page.py`, `live_board.py`: the live page of `vesper board` and its HTTP responses
- `registry_record.py`: the same facts as a record of OpenDP's deployments registry
"""
