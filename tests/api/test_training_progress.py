"""Where progress is reported."""

import pytest

from vesper.api.training import progress_reporter
from vesper.progress import no_progress


def test_no_progress_a_callable_and_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_reporter(False) as silent:
        assert silent is no_progress
    reported: list[int] = []

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        reported.append(done)

    with progress_reporter(progress) as reporter:
        reporter("training", 3, 4)
    assert reported == [3]
    with progress_reporter(True) as bar:
        bar("training", 4, 4)
    captured = capsys.readouterr()
    assert "training" in captured.err
    assert captured.out == ""
