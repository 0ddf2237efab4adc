"""Who hears of progress."""

import pytest

from vesper.api.training import watching
from vesper.progress import silent


def test_nobody_somebody_and_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(False) as nobody:
        assert nobody is silent
    heard: list[int] = []

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        heard.append(done)

    with watching(progress) as somebody:
        somebody("training", 3, 4)
    assert heard == [3]
    with watching(True) as bar:
        bar("training", 4, 4)
    captured = capsys.readouterr()
    assert "training" in captured.err
    assert captured.out == ""
