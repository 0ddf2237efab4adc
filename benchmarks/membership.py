"""`make attack-page`: node membership without privacy, and with edges or nodes protected.

    python -m benchmarks.membership               run missing cells, write the table
    python -m benchmarks.membership --work DIR    store party folders there; --table: run nothing

Measured cells are in membership.jsonl, by settings; a stopped run resumes there. The table is
inserted between two markers of docs/attacks.md.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from benchmarks.page import log, spread

from vesper.attack.node_membership import attack_settings
from vesper.datasets.loaders.convert import convert
from vesper.method.settings import Config
from vesper.session.config import load_config

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
RESULTS = HERE / "membership.jsonl"
PAGE = HERE.parent / "docs" / "attacks.md"
FIRST, LAST = "<!-- membership: made by `make attack-page` -->", "<!-- end -->"
SEEDS = (0, 1, 2)
SET, MOST_NEIGHBOURS, EPSILON = "cora", 168, 4.0
SMALL = {"epochs": 40, "width": 32}

ROWS: dict[str, dict[str, Any]] = {
    "features alone (`mlp`)": {"method": "mlp"},
    "open graph network (`gin`)": {"method": "gin"},
    "edges protected": {"method": "certified"},
    "nodes protected": {
        "method": "certified",
        "privacy_unit": "node",
        "max_degree": MOST_NEIGHBOURS,
    },
}
"""Settings of each row, in the order of the table."""

Cell = dict[str, Any]


def cells() -> list[Cell]:
    if not RESULTS.exists():
        return []
    return [json.loads(text) for text in RESULTS.read_text(encoding="utf-8").splitlines()]


def config_of(given: dict[str, Any], seed: int) -> Config:
    return load_config(None, {**SMALL, "epsilon": EPSILON, "seed": seed, **given})


def table(measured: list[Cell]) -> str:
    lines = ["| what is protected | seeds | AUC of the attack | TPR at 0.1 % FPR |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    for name in ROWS:
        of_row = [cell for cell in measured if cell["name"] == name]
        if of_row:
            auc, tpr = ([100 * cell[key] for cell in of_row] for key in ("auc", "tpr"))
            lines.append(f"| {name} | {len(of_row)} | {spread(auc)} | {spread(tpr)} |")
    return "\n".join(lines)


def insert_table(text: str) -> None:
    """Insert the table between its markers on the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(FIRST)
    after = rest.partition(LAST)[2]
    PAGE.write_text(f"{before}{FIRST}\n{text}\n{LAST}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="folder for party folders; default: a new one")
    parser.add_argument("--table", action="store_true", help="run nothing, only write the table")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    known = {cell["settings"] for cell in cells()}
    wanted = [(name, seed) for seed in SEEDS for name in ROWS]
    with tempfile.TemporaryDirectory() as text:
        folder = (arguments.work or Path(text)) / SET
        for name, seed in [] if arguments.table else wanted:
            config = config_of(ROWS[name], seed)
            if config.contract[:16] in known:
                continue
            if not folder.exists():
                convert(DATA / SET, folder)
            roc = attack_settings(config, folder, seed=seed).roc
            cell = {"name": name, "seed": seed, "settings": config.contract[:16]}
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**cell, "auc": roc.auc, "tpr": roc.tpr}) + "\n")
            log(f"{name}, seed {seed}: {100 * roc.auc:.1f}")
    insert_table(table(cells()))
    log(str(PAGE))


if __name__ == "__main__":
    main()
