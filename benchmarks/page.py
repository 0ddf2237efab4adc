"""Output of benchmarks: progress on standard error, the page on standard output and in a file."""

import argparse
import os
import platform
import sys
from pathlib import Path
from statistics import mean, stdev

SHARE = 50
"""Factor by which graphs are smaller with --small."""


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0].split(":")[1].strip() if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def options(program: str | None, *, small: str) -> argparse.ArgumentParser:
    """Parser with the common options; `program` is the docstring of the benchmark."""
    parser = argparse.ArgumentParser(description=program.splitlines()[0] if program else None)
    parser.add_argument("--small", action="store_true", help=small)
    parser.add_argument("--write", action="store_true", help="write the page next to the program")
    return parser


def command(file: str) -> str:
    """Command line for the page; absolute paths are replaced, because they are private."""
    arguments = ("DIR" if Path(word).is_absolute() else word for word in sys.argv[1:])
    return " ".join([f"python -m benchmarks.{Path(file).stem}", *arguments])


def publish(text: str, file: str, *, write: bool) -> None:
    """Print the page; with `write`, also write it next to its program."""
    print(text)
    if write:
        Path(file).with_suffix(".md").write_text(text)


def spread(values: list[float]) -> str:
    """Format mean and standard deviation over seeds.

    >>> spread([80.0, 82.0]), spread([80.0])
    ('81.00 ± 1.41', '80.00 ± -')
    """
    return f"{mean(values):.2f} ± {f'{stdev(values):.2f}' if len(values) > 1 else '-'}"


def shrink(sizes: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Sizes of graphs, in nodes and edges, divided by `SHARE`.

    >>> shrink({"large": (1000, 5000)})
    {'large / 50': (20, 100)}
    """
    return {f"{name} / {SHARE}": (n // SHARE, e // SHARE) for name, (n, e) in sizes.items()}
