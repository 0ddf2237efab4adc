"""How bytes get to the other side. Knows frames of bytes, not messages."""

import os

# gRPC writes its own log lines to standard error; what went wrong is said by our errors.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
