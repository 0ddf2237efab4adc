"""Released features as a file, with a signed statement of what they cost."""
