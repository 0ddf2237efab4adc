"""How bytes get to the other side. Knows frames of bytes, not messages."""
