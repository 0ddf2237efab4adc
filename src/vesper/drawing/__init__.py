"""Charts as SVG: shapes and axes (`svg.py`), and sheets of charts with curves (`sheet.py`)."""
