"""Studies: grids of settings, run on all cores, beside the numbers that the paper publishes."""
