"""The command line: parse, call, print. One file a verb."""
