"""Whatever happens to one cell, the others are measured and no files are left behind."""

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vesper.study.runner import run_jobs
from vesper.study.worker import Job, Worker, keeps_memory, measure_job

MakeJob = Callable[[str, int], Job]
LONG = 3600.0


def test_a_bad_cell_does_not_affect_the_others(
    job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    jobs = [job("wrong", 0), job("deadly", 1), job("quick", 2)]
    work = tmp_path / "work"
    work.mkdir()
    lines = {line.seed: line for line in run_jobs(jobs, workers=1, limit=LONG, work=work)}
    assert lines[0].failed == "ValueError: no luck"
    assert "killed" in (lines[1].failed or "")
    assert (lines[2].test, lines[2].plan) == (1.0, "certified")  # one thread per worker
    assert list(work.iterdir()) == []


def test_a_cell_is_stopped_at_its_limit(job: MakeJob, tmp_path: Path) -> None:
    (line,) = run_jobs([job("endless", 0)], workers=1, limit=0.5, work=tmp_path)
    assert (line.limit, line.test, line.failed) == (0.5, None, None)


@pytest.mark.skipif(
    not keeps_memory(*platform.libc_ver()), reason="this C library cannot keep freed memory"
)
def test_a_worker_keeps_freed_memory(job: MakeJob, tmp_path: Path) -> None:
    (line,) = run_jobs([job("allocating", 0)], workers=1, limit=60, work=tmp_path)
    assert line.test is not None
    assert line.test < (1 << 26) / 4096  # pages of one block; ten were allocated


def test_closing_early_ends_all_workers(job: MakeJob, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    lines = run_jobs([job("quick", 0), job("endless", 1)], workers=2, limit=LONG, work=work)
    assert next(lines).seed == 0
    lines.close()  # would wait forever for the other cell
    assert list(work.iterdir()) == []


def test_workers_are_replaced(
    job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def counting() -> Worker:
        started.append(1)
        return Worker()

    monkeypatch.setattr("vesper.study.runner.Worker", counting)
    monkeypatch.setattr("vesper.study.runner.CELLS_PER_WORKER", 2)
    jobs = [job("quick", seed) for seed in range(3)]
    assert len(list(run_jobs(jobs, workers=1, limit=LONG, work=tmp_path))) == 3
    assert len(started) == 2


def test_jobs_of_one_family_wait_while_there_are_others(
    job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigned: list[tuple[int, float]] = []
    assign = Worker.assign

    def recording(worker: Worker, job: Job, out: Path) -> None:
        assigned.append((job.cell.seed, job.cell.epsilon))
        assign(worker, job, out)

    monkeypatch.setattr(Worker, "assign", recording)
    one, other = job("quick", 0), job("quick", 1)
    family = replace(one, cell=replace(one.cell, epsilon=8.0))
    assert one.family == family.family != other.family
    lines = list(run_jobs([one, family, other], workers=2, limit=LONG, work=tmp_path))
    assert len(lines) == 3
    assert assigned == [(0, 4.0), (1, 4.0), (0, 8.0)]


def test_a_result_has_the_settings_and_code_behind_it(job: MakeJob, tmp_path: Path) -> None:
    line = measure_job(job("wrong", 5), tmp_path / "out")
    assert (line.seed, line.decoder, line.measure, len(line.code)) == (5, "concat", "wrong", 12)
    assert line.settings == job("wrong", 5).config.contract[:16]
