"""Who hears of progress."""

import pytest

from vesper.api.training import progress_reporter
from vesper.progress import no_progress


def test_nobody_somebody_and_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_reporter(False) as nobody:
        assert nobody is no_progress
    heard: list[int] = []

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        heard.append(done)

    with progress_reporter(progress) as somebody:
        somebody("training", 3, 4)
    assert heard == [3]
    with progress_reporter(True) as bar:
        bar("training", 4, 4)
    captured = capsys.readouterr()
    assert "training" in captured.err
    assert captured.out == ""
