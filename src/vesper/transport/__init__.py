"""Transport: frames of bytes between the parties; knows nothing of messages.

In reading order:

- `channel.py`: what every transport can do; `close_reason.py`: why an end closes the connection.
- `memory.py`: both ends in one process.
- `stream.py`: frames over a stream of chunks; `grpc_channel.py`: that stream over mutual TLS;
  `refusal.py`: why a listener accepts no connection.
- `durable_channel.py`: every frame exactly once, across connections and crashes, by means of
  `frame_log.py` (frames on disk), `reconnect.py` (one connection after another),
  `session_greeting.py` (whether two ends fit together) and
  `transcript.py` (hash chain of all frames).
"""

import os

# gRPC writes log lines to standard error; our own errors already say what went wrong.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
