"""Where party folders come from: simulators, transactions, public data on disk."""
