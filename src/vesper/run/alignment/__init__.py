"""Alignment: the same labelled ids on both sides, in the same order, proved."""
