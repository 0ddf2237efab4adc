"""Every method behind one interface: what runs at each side, and what it is worth as privacy."""
