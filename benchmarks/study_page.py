"""Write docs/study-small.md: every study of the paper with --small, its table and its figure.

    python -m benchmarks.study_page --out DIR [--workers N] [STUDY ...]

Runs `vesper study run STUDY --small` in DIR for each, going on where it was stopped, and writes the
page from what is there. Without names: all that the package has.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.page import log, machine

from vesper.study.figures import write_figures
from vesper.study.findings import Findings, findings_in
from vesper.study.presets import NAMES
from vesper.study.table import as_markdown

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "study-small.md"

READING = {
    "membership": """\
Edge privacy is not about membership: on Reddit the MLP, which reads no edge, is attacked as well as
the certified plan, because both fit the few training nodes of a small graph closely.
[attacks](attacks.md) says what protects nodes.""",
    "trade-off": """\
At full size amplification by sampling buys the paper's plan the dotted curves, on a count that does
not hold ([errata](errata.md)); at this size it buys nothing, and on the two dense sets its noise
drowns everything. The certified plan does not depend on it.""",
    "table-full": "CONCAT and GRU differ little, as in the paper.",
    "max-degree": """\
More neighbours are more to hear and more noise. On Finance the noise decides, on Reddit at epsilon
32 the neighbours do; both as in the paper.""",
    "min-degree": """\
A larger D_min sends more nodes to the branch without edges and lowers the noise of the others. At
this size, where noise drowns the rest, larger is better or makes no difference; the paper prints
the opposite at epsilon 32 and on Finance.""",
    "batch-size": """\
Larger batches are worse almost everywhere, as with the paper's GIN at epsilon 4: amplification by
sampling shrinks with them.""",
}

HEAD = """\
# The paper's tables and figures, small

Small simulated graphs, two seeds: they show how rows compare with each other, not whether the
paper's numbers are reached; [study](study.md) says why. Made by `make study-page ARGS="--out DIR"`
on {machine}.

"""


def section(name: str, findings: Findings) -> str:
    """One study: figure, how to read it, tables."""
    lines = as_markdown(findings).splitlines()
    title, *rest = lines
    body = "\n".join(f"#{line}" if line.startswith("#") else line for line in rest)
    figures = write_figures(findings, DOCS / "figures")
    pictures = "\n\n".join(f"![{name}](figures/{path.name})" for path in figures)
    reading = f"{READING[name]}\n\n" if name in READING else ""
    return f"## {title.lstrip('# ')}\n\n{reading}{pictures}\n{body.rstrip()}\n"


def main() -> None:
    """Run what is missing, write the page."""
    parser = argparse.ArgumentParser(description="All studies, small, on one page.")
    parser.add_argument("--out", type=Path, required=True, help="holds a folder a study")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-run", action="store_true", help="only what is there already")
    parser.add_argument("names", nargs="*", metavar="STUDY")
    asked = parser.parse_args()
    sections = []
    for name in asked.names or NAMES:
        folder = asked.out / name
        if not asked.no_run:
            log(f"== {name}")
            verb = [sys.executable, "-m", "vesper", "study", "run", name, "--small"]
            more = ["--out", str(folder), "--workers", str(asked.workers)]
            subprocess.run([*verb, *more], check=True, stdout=subprocess.DEVNULL)
        if (folder / "study.json").exists():
            sections.append(section(name, findings_in(folder)))
    PAGE.write_text(HEAD.format(machine=machine()) + "\n".join(sections), encoding="utf-8")
    log(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
