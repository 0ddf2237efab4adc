"""The Python interface: one estimator, arrays and graphs of other libraries in, predictions out."""
