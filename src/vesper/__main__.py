"""The program `vesper`, which `python -m vesper` is too."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C while it loads ends it without a word: nothing has begun."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from vesper.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
