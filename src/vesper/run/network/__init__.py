"""A party as a process of its own: it meets the other, trains, goes on after a crash."""
