"""Write docs/study-small.md: every study of the paper with --small, its table and its figure.

    python -m benchmarks.study_page --out DIR [--workers N] [STUDY ...]

Runs `vesper study run STUDY --small` in DIR for each study, resuming where it was stopped, and
writes the page from the results in DIR. Without names, runs all studies of the package.
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
Edge privacy does not protect membership: on Reddit the attack succeeds on the MLP, which reads no
edge, as well as on the certified plan, because both fit the few training nodes of a small graph
closely. [attacks](attacks.md) says what protects nodes.""",
    "trade-off": """\
At full size the dotted curves of the paper's plan rest on amplification by sampling, by a count
that does not hold ([errata](errata.md)); at this size amplification brings nothing, and on the two
dense graphs the noise drowns everything. The certified plan does not depend on it.""",
    "table-full": "CONCAT and GRU differ little, as in the paper.",
    "max-degree": """\
More neighbours mean more information and more noise. On Finance the noise decides, on Reddit at
epsilon 32 the neighbours do; both as in the paper.""",
    "min-degree": """\
A larger D_min sends more nodes to the branch without edges and lowers the noise of the others. At
this size, where noise drowns the rest, larger is better or makes no difference; the paper reports
the opposite at epsilon 32 and on Finance.""",
    "batch-size": """\
Larger batches are worse almost everywhere, as with the paper's GIN at epsilon 4: they reduce
amplification by sampling.""",
}

HEAD = """\
# The paper's tables and figures, small

Small simulated graphs, two seeds: they show how rows compare with each other, not whether the
paper's numbers are reached; [study](study.md) says why. Written by
`make study-page ARGS="--out DIR"` on {machine}.

"""


def section(name: str, findings: Findings) -> str:
    """Section of one study: comment, figure and tables."""
    lines = as_markdown(findings).splitlines()
    title, *rest = lines
    body = "\n".join(f"#{line}" if line.startswith("#") else line for line in rest)
    figures = write_figures(findings, DOCS / "figures")
    pictures = "\n\n".join(f"![{name}](figures/{path.name})" for path in figures)
    reading = f"{READING[name]}\n\n" if name in READING else ""
    return f"## {title.lstrip('# ')}\n\n{reading}{pictures}\n{body.rstrip()}\n"


def main() -> None:
    """Run missing cells and write the page."""
    parser = argparse.ArgumentParser(description="Write all studies with --small to one page.")
    parser.add_argument("--out", type=Path, required=True, help="folder with one folder per study")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-run", action="store_true", help="only use existing results")
    parser.add_argument("names", nargs="*", metavar="STUDY")
    arguments = parser.parse_args()
    sections = []
    for name in arguments.names or NAMES:
        folder = arguments.out / name
        if not arguments.no_run:
            log(f"== {name}")
            study_run = [sys.executable, "-m", "vesper", "study", "run", name, "--small"]
            more = ["--out", str(folder), "--workers", str(arguments.workers)]
            subprocess.run([*study_run, *more], check=True, stdout=subprocess.DEVNULL)
        if (folder / "study.json").exists():
            sections.append(section(name, findings_in(folder)))
    PAGE.write_text(HEAD.format(machine=machine()) + "\n".join(sections), encoding="utf-8")
    log(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
