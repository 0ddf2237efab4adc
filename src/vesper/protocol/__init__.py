"""The closed set of messages that may cross, whose turn it is, and their bytes. No sockets."""
