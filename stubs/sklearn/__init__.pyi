"""scikit-learn has no types of its own; what is used of it is here."""
