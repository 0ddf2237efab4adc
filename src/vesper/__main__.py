"""`python -m vesper` is `vesper`."""

from vesper.cli.app import main

if __name__ == "__main__":
    main()
