"""VESPER."""
