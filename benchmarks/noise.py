"""Draws of release noise per CPU second, compared with other generators in one run.

    python -m benchmarks.noise            print the table; --small for a quick trial
    python -m benchmarks.noise --write    and write benchmarks/noise.md

Our draws are secure, rounded to the grid and exact; the others are predictable floats, or bits
alone. Contenders take turns, so that other load on the machine affects all of them alike; read the
ratios, not the millions.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numba
import numpy as np
import torch
from benchmarks.page import command, log, machine, options, publish
from benchmarks.timing import Timing
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.noise.exact_law import threshold_table
from vesper.mechanism.noise.noise_source import DRAWS_PER_BLOCK, NoiseSource
from vesper.mechanism.noise.rounded_gaussian import RoundedGaussian

SCALES = (16.0, 64.0, 160.0, 640.0)
"""Standard deviations in grid steps: noise_std 0.25, 1, 2.5, 10."""

DRAWS = 1 << 20
TARGET = 150e6
BYTES_PER_DRAW = 8
KEYSTREAM = "AES-256-CTR keystream alone"

Draw = Callable[[], object]
"""Function that makes `DRAWS` draws."""


@dataclass
class Contender(Timing):
    """One generator."""

    name: str
    draw: Draw
    is_ours: bool = False
    table_bytes: int = 0

    def rate(self) -> float:
        """Draws per CPU second in the median turn."""
        return DRAWS / self.median_cpu()

    def best_rate(self) -> float:
        """Draws per CPU second in the best turn."""
        return DRAWS / min(self.cpu)


def contenders(scales: tuple[float, ...]) -> Iterator[Contender]:
    for scale in scales:
        log(f"tabulating noise of {scale:g} grid steps")
        table = threshold_table(RoundedGaussian(scale))
        name = f"vesper, noise_std {scale / STEPS:g}"
        bytes_read = table.high.nbytes + table.guide.nbytes
        yield Contender(name, ours(scale), is_ours=True, table_bytes=bytes_read)
    for bits in (np.random.PCG64, np.random.SFC64, np.random.Philox):
        yield Contender(f"numpy {bits.__name__}, float32", numpy_normals(bits(0)))
    yield Contender("torch.randn, float32", torch_normals())
    yield Contender(KEYSTREAM, keystream())


def ours(scale: float) -> Draw:
    noise, values = NoiseSource.from_os(), np.zeros(DRAWS, dtype=np.int32)
    return lambda: noise.add_gaussian_to(values, scale=scale)


def numpy_normals(bits: np.random.BitGenerator) -> Draw:
    generator, values = np.random.Generator(bits), np.empty(DRAWS, dtype=np.float32)
    return lambda: generator.standard_normal(out=values, dtype=np.float32)


def torch_normals() -> Draw:
    generator, values = torch.Generator().manual_seed(0), torch.empty(DRAWS)
    return lambda: torch.randn(DRAWS, generator=generator, out=values)


def keystream() -> Draw:
    """The keystream behind our draws, generated in blocks of the same size."""
    stream = Cipher(AES(os.urandom(32)), CTR(bytes(16))).encryptor()
    zeros, buffer = (
        bytes(BYTES_PER_DRAW * DRAWS_PER_BLOCK),
        bytearray(BYTES_PER_DRAW * DRAWS_PER_BLOCK + 15),
    )

    def draw() -> None:
        for _ in range(0, DRAWS, DRAWS_PER_BLOCK):
            stream.update_into(zeros, buffer)

    return draw


def measure(scales: tuple[float, ...], turns: int) -> list[Contender]:
    all_contenders = list(contenders(scales))
    for contender in all_contenders:
        contender.draw()  # compiles, faults pages in
    for _ in range(turns):
        for contender in all_contenders:
            contender.clock(contender.draw)
    return all_contenders


def rows(all_contenders: list[Contender]) -> Iterator[str]:
    fastest_peer = max(
        one.rate() for one in all_contenders if not one.is_ours and one.name != KEYSTREAM
    )
    limit = next(one for one in all_contenders if one.name == KEYSTREAM).rate()
    for one in all_contenders:
        ratios = " | | |"
        if one.is_ours:
            ratios = (
                f" {one.rate() / TARGET:.2f} x | {one.rate() / fastest_peer:.2f} x "
                f"| {one.rate() / limit:.0%} |"
            )
        table = f"{one.table_bytes / 1024:,.0f}" if one.is_ours else ""
        wall = DRAWS / one.median() / 1e6
        yield (
            f"| {one.name} | {table} | {one.best_rate() / 1e6:,.0f} | {one.rate() / 1e6:,.0f} "
            f"| {wall:,.0f} |{ratios}"
        )


def report(scales: tuple[float, ...], turns: int, command_line: str) -> str:
    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        all_contenders = measure(scales, turns)
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])
    gigabytes = (
        next(one for one in all_contenders if one.name == KEYSTREAM).rate() * BYTES_PER_DRAW / 1e9
    )
    return "\n".join(
        [
            "# Noise: draws per CPU second",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, load {os.getloadavg()[0]:.1f}.",
            f"One thread each, {DRAWS:,} draws per turn, {turns} turns, medians unless marked "
            f"best. Target: {TARGET / 1e6:.0f} M per CPU second. The others are not secure, not "
            "rounded and not exact.",
            "",
            "| generator | table, KiB | M draws per CPU second, best | median | M per wall second "
            "| of the target | of the fastest insecure one | of the limit |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows(all_contenders),
            "",
            f"The limit is the keystream: {BYTES_PER_DRAW} bytes per draw at {gigabytes:.1f} GB/s. "
            "Below it, the rate falls as the table outgrows the caches: each draw reads one random "
            "entry of the guide and at least one threshold.",
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="few turns")
    parser.add_argument("--turns", type=int, default=60, help="turns of each contender")
    parser.add_argument(
        "--scales", type=float, nargs="+", default=SCALES, help="standard deviations in grid steps"
    )
    arguments = parser.parse_args()
    turns = 8 if arguments.small else arguments.turns
    text = report(tuple(arguments.scales), turns, command(__file__))
    publish(text, __file__, write=arguments.write)


if __name__ == "__main__":
    main()
