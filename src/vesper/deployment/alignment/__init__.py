"""Alignment."""
