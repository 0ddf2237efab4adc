"""Layers of the paper's plan: sampled, with gradients through edges; nothing is certified."""
