"""Entry point of the `vesper` program and of `python -m vesper`."""

import os
import signal
from types import FrameType


def _end(signum: int, frame: FrameType | None) -> None:
    """End at once: nothing has been written, and a library being imported may swallow an error."""
    os.write(2, b"vesper: interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line from the first moment to the last."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    from vesper.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
