from dataclasses import replace

import numpy as np
import pytest
import torch

from vesper.errors import RemoteProtocolError, VesperError
from vesper.model.decoders import CorrectingDecoder
from vesper.model.ensemble import mean_logits, member_offsets
from vesper.model.objective import Classification
from vesper.party.label_party import LabelParty
from vesper.protocol.fields import digest_of_roots
from vesper.protocol.messages import Embeddings, Purpose, Verdict

LABELS = np.array([0, 1, 2, 0, 1, 2])
ROOTS = np.array([4, 0, 2])


def party(patience: int = 2, local_updates: int = 1) -> LabelParty:
    decoder = CorrectingDecoder(num_classes=3, stages=1)
    made = LabelParty(
        Classification(LABELS, 3),
        decoder,
        learning_rate=0.1,
        weight_decay=0.0,
        patience=patience,
        local_updates=local_updates,
    )
    made.begin_stage(0)
    return made


def embeddings(roots: np.ndarray[tuple[int], np.dtype[np.int64]] = ROOTS) -> Embeddings:
    values = np.random.default_rng(0).normal(size=(3, 3, 1)).astype(np.float32)
    return Embeddings(
        step=7, purpose=Purpose.TRAIN, roots_digest=digest_of_roots(roots), values=values
    )


def test_gradients_are_those_of_the_mean_cross_entropy() -> None:
    sent = embeddings()
    gradients = party().learn(sent, ROOTS)
    values = torch.from_numpy(sent.values.copy()).requires_grad_()
    loss = torch.nn.functional.cross_entropy(values[:, :, 0], torch.from_numpy(LABELS[ROOTS]))
    torch.autograd.backward([loss])
    assert values.grad is not None
    assert gradients.step == 7
    assert np.allclose(gradients.values, values.grad.numpy(), atol=1e-6)


def test_each_member_has_its_own_loss() -> None:
    decoder = CorrectingDecoder(num_classes=3, stages=1, members=2)
    made = LabelParty(
        Classification(LABELS, 3), decoder, learning_rate=0.1, weight_decay=0.0, patience=2
    )
    made.begin_stage(0)
    drawn = np.random.default_rng(1).normal(size=(3, 3, 2)).astype(np.float32)
    logits = torch.from_numpy(drawn).requires_grad_()
    mean = mean_logits(logits)
    sent = torch.cat([mean[:, :, None], member_offsets(logits, mean)], dim=2)
    gradients = made.learn(replace(embeddings(), values=sent.detach().numpy()), ROOTS)
    torch.autograd.backward([sent], [torch.from_numpy(gradients.values)])
    assert logits.grad is not None
    for member in range(2):
        alone = party().learn(replace(embeddings(), values=drawn[:, :, [member]]), ROOTS)
        assert np.allclose(logits.grad[:, :, [member]].numpy(), alone.values, atol=1e-6)


@pytest.mark.parametrize("wrong", [[0, 4, 2], [4, 0, 3], [4, 0]])
def test_rows_can_never_silently_shift(wrong: list[int]) -> None:
    with pytest.raises(RemoteProtocolError, match="other roots than expected"):
        party().learn(embeddings(), np.array(wrong))


def test_the_best_weights_are_saved_and_training_stops_when_patience_ends() -> None:
    made = party(patience=2)
    good = np.eye(3)[LABELS]
    bad = np.eye(3)[(LABELS + 1) % 3]
    rows = np.arange(6)
    assert made.verdict_of(bad, rows) is Verdict.BEST
    assert made.verdict_of(good, rows) is Verdict.BEST
    made.learn(embeddings(), ROOTS)
    changed = made.score(embeddings(), ROOTS)
    assert made.verdict_of(good, rows) is Verdict.CONTINUE
    assert made.verdict_of(bad, rows) is Verdict.STOP
    made.restore_best()
    assert not np.array_equal(made.score(embeddings(), ROOTS), changed)


def test_the_best_stage_is_selected() -> None:
    made = party()
    rows = np.arange(6)
    good = np.eye(3)[LABELS]
    made.verdict_of(good, rows)
    made.restore_best()
    at_first = made.score(embeddings(), ROOTS)
    made.begin_stage(0)
    made.learn(embeddings(), ROOTS)
    made.verdict_of(np.roll(good, 1, axis=1), rows)
    made.restore_best()
    assert not np.array_equal(made.score(embeddings(), ROOTS), at_first)
    assert made.select_stage() == 0
    assert np.array_equal(made.score(embeddings(), ROOTS), at_first)


def test_divergence_is_an_error_of_this_side() -> None:
    sent = embeddings()
    sent.values[:] = np.inf
    made = party()
    with pytest.raises(VesperError, match="lower learning_rate"):
        made.learn(sent, ROOTS)


@pytest.mark.parametrize("shape", [(3, 2, 1), (3, 3, 2), (3, 3), (2, 3, 1)])
def test_embeddings_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, dtype=np.float32)
    with pytest.raises(RemoteProtocolError, match=r"expected embeddings of shape \(3, 3, 1\)"):
        party().score(replace(embeddings(), values=values), ROOTS)


def test_local_updates_are_steps_on_the_same_embeddings() -> None:
    made, alone = party(local_updates=3), party()
    sent = embeddings()
    gradients = made.learn(sent, ROOTS)
    assert np.array_equal(gradients.values, alone.learn(sent, ROOTS).values)  # of the first step
    before = made.score(sent, ROOTS)
    made.run_local_updates()
    for _ in range(2):
        alone.learn(sent, ROOTS)
    assert np.array_equal(made.score(sent, ROOTS), alone.score(sent, ROOTS))
    assert not np.array_equal(made.score(sent, ROOTS), before)
    made.run_local_updates()
    assert np.array_equal(made.score(sent, ROOTS), alone.score(sent, ROOTS))  # once per exchange


def test_scores_that_are_not_finite_are_an_error_of_this_side() -> None:
    sent = embeddings()
    sent.values[:] = np.inf
    with pytest.raises(VesperError, match="lower learning_rate"):
        party().score(sent, ROOTS)


def test_the_last_epoch_is_kept_if_that_is_wanted() -> None:
    made = LabelParty(
        Classification(LABELS, 3),
        CorrectingDecoder(num_classes=3, stages=1),
        learning_rate=0.1,
        weight_decay=0.0,
        patience=1,
        keep_last=True,
    )
    made.begin_stage(0)
    right = np.eye(3)[LABELS[ROOTS]]
    assert made.verdict_of(right, ROOTS) is Verdict.BEST
    assert made.verdict_of(-right, ROOTS) is Verdict.BEST  # worse, but later
    assert made.best_metric < 1
