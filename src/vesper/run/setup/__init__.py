"""What two institutions do before a run: settings, contract, checks."""
