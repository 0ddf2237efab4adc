"""Charts as SVG, and tables in notebooks.

- `svg.py`: shapes and axes
- `sheet.py`: sheets of charts with curves
- `notebook.py`: what a notebook shows for a result, a budget or a graph
"""
