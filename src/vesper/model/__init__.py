"""Encoder, private representation extractor, decoder. Sees released values and edge-free data."""
