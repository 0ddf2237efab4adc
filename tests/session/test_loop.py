"""How much work is left, at most: less than planned once a stage has stopped early."""

from vesper.session.checkpoint import START_POSITION, Position
from vesper.session.loop import TrainingSchedule

SCHEDULE = TrainingSchedule(
    stages=3,
    num_train=100,
    num_val=10,
    num_test=10,
    batch_size=30,
    epochs=5,
    patience=2,
    seed=0,
)


def test_at_the_beginning_every_step_may_be_needed() -> None:
    assert SCHEDULE.steps == SCHEDULE.most_steps(START_POSITION) == 3 * 5 * 4


def test_within_a_stage_nothing_changes() -> None:
    assert SCHEDULE.most_steps(Position(0, 3, 12)) == SCHEDULE.steps


def test_epochs_that_a_stage_did_not_need_are_not_waited_for() -> None:
    stopped_after_two = Position(1, 0, 2 * 4)
    assert SCHEDULE.most_steps(stopped_after_two) == SCHEDULE.steps - 3 * 4
    at_the_end = Position(3, 0, 24)
    assert SCHEDULE.most_steps(at_the_end) == 24
