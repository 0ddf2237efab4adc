"""scikit-learn has no types of its own; what examples use of it is here."""
