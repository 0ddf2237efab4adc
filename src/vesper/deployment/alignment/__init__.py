"""Alignment of labelled ids before a run.

align                  both sides prove that they hold the same labelled ids
private_intersection   common ids, without revealing the others
aligned_file           the result, for the run that follows
"""
