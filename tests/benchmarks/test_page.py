"""Pages are printed and written unchanged, and timings are summarized."""

from pathlib import Path

import pytest
from benchmarks.page import command, options, publish, shrink
from benchmarks.timing import Timing


def test_a_page_is_printed_and_written_only_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, written = tmp_path / "speed.py", tmp_path / "speed.md"
    publish("# Speed", str(program), write=False)
    assert not written.exists()
    publish("# Speed", str(program), write=True)
    assert written.read_text() == "# Speed"
    assert capsys.readouterr().out == "# Speed\n# Speed\n"


def test_the_command_contains_the_arguments_as_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["ignored", "--small", "--turns", "3"])
    assert command("somewhere/speed.py") == "python -m benchmarks.speed --small --turns 3"


def test_every_benchmark_has_the_options_small_and_write() -> None:
    parser = options("How fast.\n\nVery.", small="few turns")
    assert parser.description == "How fast."
    arguments = parser.parse_args(["--small"])
    assert (arguments.small, arguments.write) == (True, False)
    assert shrink({"large": (1000, 5000)}) == {"large / 50": (20, 100)}


def test_a_clock_records_each_turn_and_returns_its_result() -> None:
    timed = Timing()
    assert [timed.clock(lambda: sum(range(1000))) for _ in range(3)] == [499_500] * 3
    assert len(timed.wall) == len(timed.cpu) == 3
    assert 0 < timed.best() <= timed.median()
    slower = Timing(wall=[3 * timed.best()], cpu=[1.0])
    assert timed.faster_than(slower, digits=2).startswith("3.00 x / ")
