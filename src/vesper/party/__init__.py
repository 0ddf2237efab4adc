"""party."""
