"""Charts as SVG: shapes and axes (`svg`), and sheets of charts with curves (`sheet`)."""
