"""Certified."""
