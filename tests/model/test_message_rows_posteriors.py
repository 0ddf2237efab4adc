"""A voice moves a posterior by as much as it is worth, and never against it."""

import pytest
import torch

from vesper.model.message_rows import bayes_update


@pytest.mark.parametrize("classes", [2, 5])
def test_an_open_label_is_believed_and_silence_changes_nothing(classes: int) -> None:
    posteriors = torch.rand(50, classes, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    labels = torch.arange(50) % classes
    told = torch.nn.functional.one_hot(labels, classes).float()
    assert torch.equal(bayes_update(posteriors, told), told)
    assert torch.allclose(bayes_update(posteriors, torch.full((50, classes), 0.3)), posteriors)


def test_a_response_leaves_doubt_and_raises_what_it_names() -> None:
    posteriors = torch.tensor([[0.2, 0.3, 0.5], [0.98, 0.01, 0.01]])
    label_posteriors = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    after = bayes_update(posteriors, label_posteriors)
    assert torch.allclose(after.sum(dim=1), torch.ones(2))
    assert after[0, 0] > posteriors[0, 0]
    assert after[1, 1] > posteriors[1, 1]
    assert after[1].argmax() == 0, "a doubtful voice does not undo what is all but sure"


def test_who_names_what_was_held_impossible_is_believed() -> None:
    after = bayes_update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    assert after.tolist() == [[0.0, 1.0]]
