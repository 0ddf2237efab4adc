"""Attacks on what a run shows: who was in training, and who knows whom."""
