"""Draws of release noise a CPU second against other generators, side by side in one run.

    python -m benchmarks.noise            print the table; --small for a quick look
    python -m benchmarks.noise --write    and keep it in benchmarks/noise.md

Ours are secure, rounded to the grid and exact; the others are floats that anybody can predict, or
bits alone. Contenders take turns, so that whatever else the machine does hits all of them alike;
read the ratios, not the millions.
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
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noise.rounded_gaussian import RoundedGaussian
from vesper.mechanism.noise.span import DRAWS_PER_BLOCK

SCALES = (16.0, 64.0, 160.0, 640.0)
"""Grid steps a standard deviation: noise_std 0.25, 1, 2.5, 10."""

DRAWS = 1 << 20
TARGET = 150e6
BYTES_A_DRAW = 8
KEYSTREAM = "AES-256-CTR keystream alone"

Draw = Callable[[], object]
"""Makes `DRAWS` draws."""


@dataclass
class Contender(Timing):
    """One generator."""

    name: str
    draw: Draw
    is_ours: bool = False
    table_bytes: int = 0

    def rate(self) -> float:
        """Draws a CPU second, in the median turn."""
        return DRAWS / self.median_cpu()

    def best_rate(self) -> float:
        """Draws a CPU second, in the best turn."""
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
    """What the bits of ours cost, made in the same blocks."""
    stream = Cipher(AES(os.urandom(32)), CTR(bytes(16))).encryptor()
    zeros, buffer = (
        bytes(BYTES_A_DRAW * DRAWS_PER_BLOCK),
        bytearray(BYTES_A_DRAW * DRAWS_PER_BLOCK + 15),
    )

    def draw() -> None:
        for _ in range(0, DRAWS, DRAWS_PER_BLOCK):
            stream.update_into(zeros, buffer)

    return draw


def measure(scales: tuple[float, ...], turns: int) -> list[Contender]:
    everyone = list(contenders(scales))
    for contender in everyone:
        contender.draw()  # compile, fault pages in
    for _ in range(turns):
        for contender in everyone:
            contender.clock(contender.draw)
    return everyone


def rows(everyone: list[Contender]) -> Iterator[str]:
    fastest_peer = max(one.rate() for one in everyone if not one.is_ours and one.name != KEYSTREAM)
    limit = next(one for one in everyone if one.name == KEYSTREAM).rate()
    for one in everyone:
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


def report(scales: tuple[float, ...], turns: int, asked: str) -> str:
    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        everyone = measure(scales, turns)
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])
    gigabytes = next(one for one in everyone if one.name == KEYSTREAM).rate() * BYTES_A_DRAW / 1e9
    return "\n".join(
        [
            "# Noise: draws a CPU second",
            "",
            f"Command: `{asked}`. Machine: {machine()}, load {os.getloadavg()[0]:.1f}.",
            f"One thread each, {DRAWS:,} draws a turn, {turns} turns, medians unless it says best. "
            f"Target: {TARGET / 1e6:.0f} M a CPU second. The others are not secure, not rounded "
            "and not exact.",
            "",
            "| generator | table, KiB | M draws a CPU second, best | median | M a wall second "
            "| of the target | of the fastest insecure one | of the limit |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows(everyone),
            "",
            f"The limit is the keystream: {BYTES_A_DRAW} bytes a draw at {gigabytes:.1f} GB/s. "
            "Below it, draws fall as the table grows out of the caches: each reads one random "
            "entry of the guide and at least one threshold.",
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="few turns")
    parser.add_argument("--turns", type=int, default=60, help="turns of each")
    parser.add_argument(
        "--scales", type=float, nargs="+", default=SCALES, help="grid steps a standard deviation"
    )
    asked = parser.parse_args()
    turns = 8 if asked.small else asked.turns
    text = report(tuple(asked.scales), turns, command(__file__))
    publish(text, __file__, write=asked.write)


if __name__ == "__main__":
    main()
