"""Results of trials as lines of JSON, and as a table."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from chaos.trial import TrialResult

BEGIN, END = "<!-- counts of the last full run -->", "<!-- end of the counts -->"


def read_results(path: Path) -> list[TrialResult]:
    """Read all results so far; a last line that a kill has cut off is ignored."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(TrialResult(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def append_result(path: Path, result: TrialResult) -> None:
    """Append one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"{json.dumps(asdict(result))}\n")


def table_of(results: Sequence[TrialResult]) -> str:
    """Make a Markdown table: one row per scenario and variant, and one for everything."""
    rows = [
        "| what | trials | faults | restarts | held | failed | skipped |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    kinds = sorted({(each.scenario, each.variant) for each in results})
    for scenario, variant in kinds:
        chosen = [r for r in results if (r.scenario, r.variant) == (scenario, variant)]
        rows.append(_row(f"{scenario}: {variant}", chosen))
    return "\n".join([*rows, _row("**all**", results)])


def _row(name: str, results: Sequence[TrialResult]) -> str:
    counts = [
        len(results),
        sum(1 for _ in _faults(results)),
        sum(_num_restarts(each) for each in results),
        *(sum(each.outcome == what for each in results) for what in ("held", "failed", "skipped")),
    ]
    return f"| {name} | {' | '.join(map(str, counts))} |"


def _num_restarts(result: TrialResult) -> int:
    """Processes that ended with something other than success, and were started again."""
    return sum(not code.endswith(" 0") and " " in code for code in result.codes)


def summary_of(results: Sequence[TrialResult]) -> str:
    """One paragraph about a run: seeds, minutes, counts by action."""
    seeds = ", ".join(map(str, sorted({each.seed for each in results})))
    minutes = sum(each.seconds for each in results) / 60
    counts = ", ".join(f"{count} {name}" for name, count in _actions(results))
    return (
        f"{len(results)} trials in {minutes:.0f} minutes with seed {seeds}. "
        f"Faults that happened: {counts}."
    )


def _faults(results: Iterable[TrialResult]) -> Iterator[str]:
    """Faults without what trials note in addition: valid files, and parties that were started."""
    for fault in (fault for each in results for fault in each.faults):
        if fault.split()[-1] not in ("unchanged", "helped"):
            yield fault.rpartition(": ")[2]


def _actions(results: Iterable[TrialResult]) -> list[tuple[str, int]]:
    words = {
        "kill": "kills",
        "power": "power losses",
        "full": "full disks",
        "interrupt": "interruptions",
        "SIGINT": "interruptions",
        "SIGKILL": "kills",
        "killed": "kills",
        "clock": "jumps of the clock",
    }
    counts = Counter(
        next((name for key, name in words.items() if key in fault.split()), "damaged files")
        for fault in _faults(results)
    )
    return counts.most_common()


def write_into(page: Path, results: Sequence[TrialResult]) -> None:
    """Replace the counts in a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = f"{summary_of(results)}\n\n{table_of(results)}"
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
