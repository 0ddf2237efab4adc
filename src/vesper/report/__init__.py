"""Pages for people: what was trained, how good it is, and what it promises, on one HTML page."""
