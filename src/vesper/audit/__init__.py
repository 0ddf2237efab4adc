"""Lower bounds on what a run really leaks: canary edges, likelihood ratios, confidence limits."""
