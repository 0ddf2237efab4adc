"""Where heavy work runs: in this process, or on the workers of an engine."""
