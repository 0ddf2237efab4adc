"""Entry point of the `vesper` program and of `python -m vesper`."""

import signal


def main() -> None:
    """Run the command line. Ctrl-C during loading exits silently, since nothing has started yet."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from vesper.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
