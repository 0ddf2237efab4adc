"""Run trials for some time, go on where an earlier call has stopped, and print a table."""

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path

from chaos.processes import Processes
from chaos.results import append_result, read_results, summary_of, table_of, write_into
from chaos.suite import SCENARIOS, run_trial, trials_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"


def main() -> int:
    """Run the suite; the exit code is 1 if something that is promised did not hold."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no trial after that")
    parser.add_argument("--seed", type=int, help="default: that of earlier results, or random")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "chaos", help="folder")
    parser.add_argument("--only", choices=SCENARIOS, action="append", default=[], help="scenario")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    arguments = parser.parse_args()
    path = arguments.out / "results.jsonl"
    earlier = read_results(path)
    seed = arguments.seed
    if seed is None:
        seed = earlier[-1].seed if earlier else secrets.randbelow(1_000_000)
    done = {(each.seed, each.number) for each in earlier}
    print(f"seed {seed}; {len(done)} trials were done before; results in {path}", flush=True)
    deadline = time.monotonic() + 60 * arguments.minutes
    shared = Path(tempfile.mkdtemp(prefix="vesper-chaos-trials-"))
    with Processes() as processes:
        if not processes.has_shim:
            print("no C compiler (cc) on Linux: power losses, full disks and clocks are skipped")
        for trial in trials_of(seed, only=arguments.only):
            if time.monotonic() > deadline:
                break
            if (seed, trial.number) in done:
                continue
            result = run_trial(processes, trial, shared)
            append_result(path, result)
            faults = "; ".join(result.faults) or "no fault"
            print(f"{trial}: {result.outcome} ({result.seconds:.0f} s; {faults})", flush=True)
            if result.outcome == "failed":
                print(result.detail, file=sys.stderr, flush=True)
    results = read_results(path)
    if not results:
        return 0
    print(f"\n{summary_of(results)}\n\n{table_of(results)}")
    if arguments.write:
        write_into(PAGE, results)
    return int(any(each.outcome == "failed" for each in results))


if __name__ == "__main__":
    sys.exit(main())
