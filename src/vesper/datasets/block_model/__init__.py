"""Simulated graphs with classes, from a degree-corrected block model.

- `simulate_graph`: the model, and the folders written from it; start here
- `published_graphs`: the models that imitate ogbn-products and Reddit
- `class_structure`: classes, splits, and how edges follow classes
- `degree_profile`: degrees from a published histogram
- `stub_matching`: a simple graph with given degrees
- `class_features`: features that depend on the class
"""
